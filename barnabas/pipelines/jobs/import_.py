"""The import job: writes new files, or the new rows of a database table or query, to a topic.

Knows nothing of how files and tables are read. Imported without Spark.
"""

from barnabas.pipelines.jobs.importing.files import FileImport
from barnabas.pipelines.jobs.importing.options import ImportOptions
from barnabas.pipelines.jobs.importing.tables import TableImport

__all__ = ["FileImport", "Import", "ImportOptions", "TableImport"]


def Import(options: ImportOptions) -> FileImport | TableImport:
    """Creates the job for these options: an import of files or of a table."""
    return FileImport(options) if options.files is not None else TableImport(options)
