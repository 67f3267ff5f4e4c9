// `act` and `update` of learners in one call of C. A method of Python that asks `Rounds` would take longer than deciding does.
//
// `in_one_call(method, kind)` returns a method that tries the learner's `_engine.rounds`, and leaves to the given method what
// these leave: other arguments, other contexts, or a learner without an engine.
#include <Python.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <new>
#include <string>

#include "python/module.hpp"
#include "python/rounds.hpp"

namespace nb = nanobind;
using o2::Rounds;

namespace {

struct OneCall {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* method;  // in Python
};

// Attributes that are asked for in every round.
struct Names {
  PyObject* engine = PyUnicode_InternFromString("_engine");
  PyObject* rounds = PyUnicode_InternFromString("rounds");
  PyObject* learn = PyUnicode_InternFromString("learn_if_due");
};

const Names& names() {
  static const Names found;
  return found;
}

PyObject* in_python(PyObject* self, PyObject* const* args, size_t nargs, PyObject* keywords) {
  return PyObject_Vectorcall(reinterpret_cast<OneCall*>(self)->method, args, nargs, keywords);
}

// The learner's engine and its rounds; none if it has none yet.
struct Found {
  nb::object engine, rounds;

  explicit Found(PyObject* learner) {
    engine = nb::steal(PyObject_GetAttr(learner, names().engine));
    if (!engine.is_valid()) nb::raise_python_error();
    if (engine.is_none()) return;
    rounds = nb::steal(PyObject_GetAttr(engine.ptr(), names().rounds));
    if (!rounds.is_valid()) nb::raise_python_error();
    static const PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<Rounds>().ptr());
    if (Py_TYPE(rounds.ptr()) != type) rounds.reset();
  }
  Rounds* operator->() const { return nb::inst_ptr<Rounds>(rounds); }
  bool none() const { return !rounds.is_valid(); }
};

// The result of `work`, an owned reference, or null with Python's error set.
template <class Work>
PyObject* guarded(const Work& work) {
  try {
    return work();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  }
  return nullptr;
}

PyObject* act(PyObject* self, PyObject* const* args, size_t nargs, PyObject* keywords) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargs);
  if ((n == 2 || n == 3) && !keywords) {
    const auto decided = [&]() -> PyObject* {
      const Found found(args[0]);
      if (found.none()) return Py_NewRef(Py_None);
      return (n == 2 ? found->act(args[1]) : found->act(args[1], args[2])).release().ptr();
    };
    PyObject* decision = guarded(decided);
    if (decision != Py_None) return decision;
    Py_DECREF(decision);
  }
  return in_python(self, args, nargs, keywords);
}

PyObject* update(PyObject* self, PyObject* const* args, size_t nargs, PyObject* keywords) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargs);
  if ((n == 3 || n == 5) && !keywords) {
    const auto told = [&]() -> PyObject* {
      const Found found(args[0]);
      if (found.none()) return Py_NewRef(Py_None);
      const int done = n == 3 ? found->update(args[1], args[2]) : found->tell(args[1], args[2], args[3], args[4]);
      if (done == o2::LEFT) return Py_NewRef(Py_None);
      if (done == o2::DUE && !found->look()) {
        const nb::object learned = nb::steal(PyObject_CallMethodNoArgs(found.engine.ptr(), names().learn));
        if (!learned.is_valid()) nb::raise_python_error();
      }
      return Py_NewRef(args[0]);
    };
    PyObject* learner = guarded(told);
    if (learner != Py_None) return learner;
    Py_DECREF(learner);
  }
  return in_python(self, args, nargs, keywords);
}

PyObject* bound(PyObject* self, PyObject* learner, PyObject*) {
  return learner ? PyMethod_New(self, learner) : Py_NewRef(self);
}

PyObject* attribute(PyObject* self, PyObject* name) { return PyObject_GetAttr(reinterpret_cast<OneCall*>(self)->method, name); }

PyObject* wrapped(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<OneCall*>(self)->method); }

void destroy(PyObject* self) {
  Py_DECREF(reinterpret_cast<OneCall*>(self)->method);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// What the method in Python says of itself, this one says too; `__wrapped__` is that method.
PyObject* asked(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) return wrapped(self, nullptr);
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 || PyUnicode_CompareWithASCIIString(name, "__get__") == 0)
    return PyObject_GenericGetAttr(self, name);
  return attribute(self, name);
}

PyObject* type_of_calls() {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OneCall, call), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
                                {Py_tp_getattro, reinterpret_cast<void*>(asked)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_members, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"o2pl._core.OneCall", sizeof(OneCall), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  static PyObject* type = PyType_FromSpec(&spec);
  if (!type) nb::raise_python_error();
  return type;
}

nb::object in_one_call(nb::object method, const std::string& kind) {
  o2::expect(kind == "act" || kind == "update", "kind: expected act or update");
  auto* type = reinterpret_cast<PyTypeObject*>(type_of_calls());
  nb::object made = nb::steal(type->tp_alloc(type, 0));
  if (!made.is_valid()) nb::raise_python_error();
  auto* call = reinterpret_cast<OneCall*>(made.ptr());
  call->call = kind == "act" ? act : update;
  call->method = method.release().ptr();
  return made;
}

}  // namespace

void bind_one_call(nb::module_& m) {
  m.def("in_one_call", &in_one_call, nb::arg("method"), nb::arg("kind"),
        nb::sig("def in_one_call(method: typing.Any, kind: str) -> typing.Any"),
        "Return a method that decides (act) or appends a row (update) in one call, and calls the given one for all else.");
}
