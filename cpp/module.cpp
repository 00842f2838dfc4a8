#include <nanobind/nanobind.h>

void register_arrow(nanobind::module_& m);

NB_MODULE(_core, m) { register_arrow(m); }
