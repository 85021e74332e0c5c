"""Import Beam without its warning that a BigQuery client is missing, which nothing here uses."""

import logging


def _wanted(record: logging.LogRecord) -> bool:
    return "apitools not found" not in record.getMessage()


logging.getLogger().addFilter(_wanted)
import apache_beam  # noqa: E402, F401  (below the filter: the warning comes with the import)

logging.getLogger().removeFilter(_wanted)
