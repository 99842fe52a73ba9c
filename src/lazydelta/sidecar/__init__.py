"""The stats sidecar on disk: its format, how parts are written and read, what binds it to a log."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.sidecar.find.discover import SidecarAwareProvider
    from lazydelta.sidecar.format.binding import bound_file, delta_mismatch, make_binding, mismatch
    from lazydelta.sidecar.format.config import SidecarConfig
    from lazydelta.sidecar.format.conform import conform
    from lazydelta.sidecar.format.damage import DamagedSidecarError
    from lazydelta.sidecar.format.delta_file import (
        DeltaFacts,
        DeltaFileReader,
        delta_rows,
        delta_schema,
        store_delta_file,
        write_delta_file,
    )
    from lazydelta.sidecar.format.folder import (
        assemble,
        commit_manifest,
        list_sidecars,
        read_manifest,
        row_groups_by_part,
    )
    from lazydelta.sidecar.format.layout import (
        SidecarLayout,
        configured_stats_paths,
        field_kind,
        field_path,
        layout_of,
        sort_keys,
    )
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
    from lazydelta.sidecar.format.memory import TakenOnce
    from lazydelta.sidecar.format.names import LAZY_FOLDER, delta_name, manifest_name, part_name
    from lazydelta.sidecar.format.part_reader import PartReader
    from lazydelta.sidecar.format.part_writer import (
        PartFacts,
        PartShape,
        WrittenPart,
        row_group_span,
        rows_per_part,
        store_part,
        write_part,
    )
    from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS, typed_rows
    from lazydelta.sidecar.order.external_sort import ExternalSorter
    from lazydelta.sidecar.read.pruner import PredicatePruner
    from lazydelta.sidecar.read.reading import SidecarReading

__all__ = [
    "BUILD_COLUMNS",
    "LAZY_FOLDER",
    "Binding",
    "BoundFile",
    "DamagedSidecarError",
    "DeltaFacts",
    "DeltaFileReader",
    "ExternalSorter",
    "Manifest",
    "Part",
    "PartFacts",
    "PartReader",
    "PartShape",
    "PredicatePruner",
    "RowGroup",
    "SidecarAwareProvider",
    "SidecarConfig",
    "SidecarLayout",
    "SidecarReading",
    "TakenOnce",
    "WrittenPart",
    "ZoneBounds",
    "assemble",
    "bound_file",
    "commit_manifest",
    "configured_stats_paths",
    "conform",
    "decode_manifest",
    "delta_mismatch",
    "delta_name",
    "delta_rows",
    "delta_schema",
    "encode_manifest",
    "field_kind",
    "field_path",
    "layout_of",
    "list_sidecars",
    "make_binding",
    "manifest_name",
    "mismatch",
    "part_name",
    "read_manifest",
    "row_group_span",
    "row_groups_by_part",
    "rows_per_part",
    "sort_keys",
    "store_delta_file",
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
            "format.binding": "bound_file delta_mismatch make_binding mismatch",
            "format.config": "SidecarConfig",
            "format.conform": "conform",
            "format.damage": "DamagedSidecarError",
            "format.delta_file": "DeltaFacts DeltaFileReader delta_rows delta_schema store_delta_file "
            "write_delta_file",
            "format.folder": "assemble commit_manifest list_sidecars read_manifest row_groups_by_part",
            "format.layout": "SidecarLayout configured_stats_paths field_kind field_path layout_of sort_keys",
            "format.manifest": "Binding BoundFile Manifest Part RowGroup ZoneBounds decode_manifest "
            "encode_manifest",
            "format.memory": "TakenOnce",
            "format.names": "LAZY_FOLDER delta_name manifest_name part_name",
            "format.part_reader": "PartReader",
            "format.part_writer": "PartFacts PartShape WrittenPart row_group_span rows_per_part store_part "
            "write_part",
            "format.typed_rows": "BUILD_COLUMNS typed_rows",
            "order.external_sort": "ExternalSorter",
            "read.pruner": "PredicatePruner",
            "read.reading": "SidecarReading",
        },
    )
