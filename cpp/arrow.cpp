#include <nanobind/nanobind.h>

void register_arrow(nanobind::module_ &) {}
