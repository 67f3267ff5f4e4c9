#define O2_IMPORTS_NUMPY
#include "python/module.hpp"

#include "python/arrays.hpp"

namespace {

void* numpy_is_there() {
  import_array();
  return &PyArray_API;
}

}  // namespace

NB_MODULE(_core, m) {
  if (!numpy_is_there()) throw nanobind::python_error();
  m.doc() = "The compiled core of o2pl.";
  nanobind::set_leak_warnings(false);  // what a program still holds when it ends is no fault of its own
  bind_acting(m);
  bind_dictionaries(m);
  bind_adam(m);
  bind_cells(m);
  bind_curve(m);
  bind_expanding(m);
  bind_dsjson(m);
  bind_features(m);
  bind_hashed_scores(m);
  bind_finite(m);
  bind_fourier(m);
  bind_hashing(m);
  bind_json_sets(m);
  bind_deciding(m);
  bind_dense(m);
  bind_learner(m);
  bind_levels(m);
  bind_minimise(m);
  bind_objectives(m);
  bind_perceptron(m);
  bind_ridge(m);
  bind_special(m);
  bind_theory(m);
  bind_offers(m);
  bind_sparse(m);
  bind_vw_text(m);
  bind_one_call(m);
  bind_outcome(m);
  bind_rounds(m);
}
