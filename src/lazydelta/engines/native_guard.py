"""A native dataset that cannot be read, for pyarrow's own functions to meet.

Why: pyarrow hands a `Dataset` to C++ in many places that no subclass can override (`Scanner.from_dataset`,
unions, joins from the other side); without native state the process would end there, and with an empty one
rows would be missing. Contract: whatever opens it gets an `InvalidRequestError` that says what to do instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from lazydelta.errors import InvalidRequestError


class GuardHandler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """A file system on which nothing can be opened."""

    def get_type_name(self) -> str:
        """As pyarrow shows it."""
        return "lazydelta"

    def normalize_path(self, path: str) -> str:
        """As it is."""
        return path

    def refuse(self, *_: Any, **__: Any) -> NoReturn:  # Any: whatever was asked
        """What every access comes to."""
        raise InvalidRequestError(
            "pyarrow read a lazydelta dataset by itself, past the dataset's own methods",
            "the dataset",
            "use scanner(), to_table(), to_batches() of the dataset; where a function of pyarrow takes "
            "record batches, give it scanner().to_reader()",
        )

    get_file_info = get_file_info_selector = refuse
    open_input_stream = open_input_file = open_output_stream = open_append_stream = refuse
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = refuse
    delete_file = move = copy_file = refuse


def guard_dataset(schema: pa.Schema) -> pads.Dataset:
    """A dataset of this schema with one file that cannot be opened."""
    files, format_ = pafs.PyFileSystem(GuardHandler()), pads.ParquetFileFormat()
    fragment = format_.make_fragment("lazydelta", files)
    return pads.FileSystemDataset([fragment], schema, format_, files)
