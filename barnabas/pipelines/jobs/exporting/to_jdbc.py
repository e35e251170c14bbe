"""Exports batches to a database table by JDBC: rows go to a staging table first, then over in one transaction.

Each Spark task writes in a transaction of its own, so a batch that is killed may be written in part. It therefore goes
to a staging table, which is emptied when the batch is written again. One transaction then copies the rows to the table
and notes the batch's number in a second table. A batch whose number is noted is not written again. Knows nothing of
topics.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES = "barnabas_exports"
"""The table of batch numbers: the newest batch of each export, by the id of its query."""

STAGING = "barnabas_staging"

DRIVERS: Mapping[str, Mapping[str, str]] = {
    "db2": {"driver": "com.ibm.db2.jcc.DB2Driver"},
    "h2": {"driver": "org.h2.Driver"},
    "mariadb": {"driver": "org.mariadb.jdbc.Driver"},
    "mysql": {"driver": "com.mysql.cj.jdbc.Driver"},
    "oracle": {"driver": "oracle.jdbc.OracleDriver"},
    "postgresql": {"driver": "org.postgresql.Driver"},
    "sqlserver": {"driver": "com.microsoft.sqlserver.jdbc.SQLServerDriver"},
}
"""Options of Spark's JDBC source by the word after ``jdbc:``. Java does not find the driver in a jar that was added
after its start, so its class is named here."""


class JdbcTarget:
    """A table, as the target of one export. Spark creates it at the first batch if it does not exist."""

    def __init__(self, spark: "SparkSession", export: str, url: str, table: str, properties: Mapping[str, str]) -> None:
        self._spark, self._export, self._table = spark, export, table
        self._options = {**DRIVERS.get(url.split(":")[1], {}), **properties, "url": url}
        self._jvm = cast(Any, spark._jvm)
        java = self._jvm.org.apache.spark.sql
        self._dialect = java.jdbc.JdbcDialects.get(url)
        self._java_options = java.execution.datasources.jdbc.JDBCOptions
        schema = table.rpartition(".")[0]
        beside = f"{schema}." if schema else ""
        self._staging = f"{beside}{STAGING}_{export[:8]}"
        self._batches = f"{beside}{BATCHES}"
        self._is_made = False

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Adds the batch unless it is in the table; returns whether it was added.

        :raises ValueError: a later batch is in the table.
        :raises AnalysisException: the table lacks a column.
        """
        if not self._is_made:
            self._make_tables(df)
            self._is_made = True
        with self._connection() as connection:
            newest = self._newest(connection)
        if newest is not None and newest > batch:
            raise ValueError(
                f"cannot export batch {batch} to the table {self._table}: batch {newest} is there already, so the "
                "checkpoint is older than the export; continue with the newest checkpoint"
            )
        if newest == batch:
            return False
        self._save(df, self._staging, "overwrite")
        columns = ", ".join(self._dialect.quoteIdentifier(name) for name in df.columns)
        with self._connection() as connection, self._transaction(connection):
            self._execute(connection, f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {self._staging}")
            self._note(connection, batch)
        with self._connection() as connection:
            self._execute(connection, f"DROP TABLE {self._staging}")
        return True

    def publish(self) -> None:
        """Does nothing: no rows are held back."""

    def close(self) -> None:
        """Does nothing: no rows are held back."""

    def _make_tables(self, df: "DataFrame") -> None:
        """Creates the tables that do not exist, in the types of this database, and checks the columns of the others."""
        numbers = self._spark.createDataFrame([], "export_id STRING, batch_id BIGINT")
        self._save(numbers, self._batches, "append", createTableColumnTypes="export_id VARCHAR(64)")
        self._save(df.limit(0), self._table, "append")

    def _save(self, df: "DataFrame", table: str, mode: str, **more: str) -> None:
        df.write.format("jdbc").options(**self._options, **more).option("dbtable", table).mode(mode).save()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """Opens a connection with the JDBC driver that Spark uses for this URL."""
        given = self._jvm.java.util.HashMap()
        for name, value in {**self._options, "dbtable": self._table}.items():
            given[name] = value
        settings = self._java_options(self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given))
        connection = self._dialect.createConnectionFactory(settings).apply(-1)
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def _transaction(self, connection: Any) -> Iterator[None]:
        connection.setAutoCommit(False)
        try:
            yield
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def _newest(self, connection: Any) -> int | None:
        number, export = self._quoted("batch_id"), self._quoted("export_id")
        statement = connection.prepareStatement(f"SELECT {number} FROM {self._batches} WHERE {export} = ?")
        statement.setString(1, self._export)
        found = statement.executeQuery()
        newest = found.getLong(1) if found.next() else None
        statement.close()
        return newest

    def _note(self, connection: Any, batch: int) -> None:
        number, export = self._quoted("batch_id"), self._quoted("export_id")
        for sql in (
            f"UPDATE {self._batches} SET {number} = ? WHERE {export} = ?",
            f"INSERT INTO {self._batches} ({number}, {export}) VALUES (?, ?)",
        ):
            statement = connection.prepareStatement(sql)
            statement.setLong(1, batch)
            statement.setString(2, self._export)
            changed = statement.executeUpdate()
            statement.close()
            if changed:
                return

    def _quoted(self, name: str) -> str:
        return str(self._dialect.quoteIdentifier(name))

    def _execute(self, connection: Any, sql: str) -> None:
        statement = connection.createStatement()
        statement.executeUpdate(sql)
        statement.close()
