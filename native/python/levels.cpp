#include "core/levels.hpp"

#include "python/module.hpp"

void bind_levels(nanobind::module_& m) {
  m.def("level", &o2::level_name, "Return the level of instructions that kernels use: plain, avx2 or avx512.");
}
