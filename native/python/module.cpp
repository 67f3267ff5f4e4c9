#define O2_IMPORTS_NUMPY
#include "python/module.hpp"

#include "python/arrays.hpp"

namespace {

void* numpy_is_there() {
  import_array();
  return &PyArray_API;
}

// Learners are guarded by the interpreter's lock. A free-threaded Python turns it on at this import, unless it was told not to.
void expect_lock() {
  PyObject* asked = PySys_GetObject("_is_gil_enabled");  // borrowed; none before Python 3.13
  if (!asked) return;
  const nanobind::object on = nanobind::steal(PyObject_CallNoArgs(asked));
  if (!on.is_valid()) throw nanobind::python_error();
  if (on.is_none() || PyObject_IsTrue(on.ptr())) return;
  PyErr_SetString(PyExc_ImportError,
                  "o2pl: found a Python whose global interpreter lock is off (PYTHON_GIL=0 or -X gil=0), expected it on: learners"
                  " are not safe without it. Leave that setting out: a free-threaded Python then turns the lock on for o2pl");
  throw nanobind::python_error();
}

}  // namespace

NB_MODULE(_core, m) {
  expect_lock();
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
  bind_uncertainty(m);
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
  bind_numbers(m);
  bind_outcome(m);
  bind_rounds(m);
}
