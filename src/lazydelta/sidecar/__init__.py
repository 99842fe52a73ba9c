"""The stats sidecar on disk: its format, how parts are written and read, what binds it to a log."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.sidecar.find.discover import SidecarAwareProvider
    from lazydelta.sidecar.format.binding import make_binding, mismatch
    from lazydelta.sidecar.format.config import SidecarConfig
    from lazydelta.sidecar.format.damage import DamagedSidecarError
    from lazydelta.sidecar.format.delta_file import DeltaFileReader, write_delta_file
    from lazydelta.sidecar.format.folder import assemble, commit_manifest, list_sidecars, read_manifest
    from lazydelta.sidecar.format.layout import SidecarLayout, layout_of
    from lazydelta.sidecar.format.manifest import (
        Binding,
        BoundFile,
        Manifest,
        Part,
        RowGroup,
        ZoneBounds,
        decode_manifest,
        encode_manifest,
    )
    from lazydelta.sidecar.format.names import LAZY_FOLDER, delta_name, manifest_name, part_name
    from lazydelta.sidecar.format.part_reader import PartReader
    from lazydelta.sidecar.format.part_writer import PartFacts, PartShape, WrittenPart, store_part, write_part
    from lazydelta.sidecar.format.typed_rows import typed_rows
    from lazydelta.sidecar.read.reading import SidecarReading

__all__ = [
    "LAZY_FOLDER",
    "Binding",
    "BoundFile",
    "DamagedSidecarError",
    "DeltaFileReader",
    "Manifest",
    "Part",
    "PartFacts",
    "PartReader",
    "PartShape",
    "RowGroup",
    "SidecarAwareProvider",
    "SidecarConfig",
    "SidecarLayout",
    "SidecarReading",
    "WrittenPart",
    "ZoneBounds",
    "assemble",
    "commit_manifest",
    "decode_manifest",
    "delta_name",
    "encode_manifest",
    "layout_of",
    "list_sidecars",
    "make_binding",
    "manifest_name",
    "mismatch",
    "part_name",
    "read_manifest",
    "store_part",
    "typed_rows",
    "write_delta_file",
    "write_part",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "find.discover": "SidecarAwareProvider",
            "format.binding": "make_binding mismatch",
            "format.config": "SidecarConfig",
            "format.damage": "DamagedSidecarError",
            "format.delta_file": "DeltaFileReader write_delta_file",
            "format.folder": "assemble commit_manifest list_sidecars read_manifest",
            "format.layout": "SidecarLayout layout_of",
            "format.manifest": "Binding BoundFile Manifest Part RowGroup ZoneBounds "
            "decode_manifest encode_manifest",
            "format.names": "LAZY_FOLDER delta_name manifest_name part_name",
            "format.part_reader": "PartReader",
            "format.part_writer": "PartFacts PartShape WrittenPart store_part write_part",
            "format.typed_rows": "typed_rows",
            "read.reading": "SidecarReading",
        },
    )
