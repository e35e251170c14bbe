"""The import job: files as they appear, or the rows of a database as they come, to a topic.

Knows nothing of how either is read; imported without Spark.
"""

from barnabas.pipelines.jobs.importing.files import FileImport
from barnabas.pipelines.jobs.importing.options import ImportOptions
from barnabas.pipelines.jobs.importing.tables import TableImport

__all__ = ["FileImport", "Import", "ImportOptions", "TableImport"]


def Import(options: ImportOptions) -> FileImport | TableImport:
    """The job that these options are of."""
    return FileImport(options) if options.files is not None else TableImport(options)
