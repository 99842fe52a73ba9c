"""The C ABI: libdelta_lazy.so, its header, and the Python behind it. `make capi` builds it."""
