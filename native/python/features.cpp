#include "core/features.hpp"

#include <nanobind/stl/optional.h>

#include <stdexcept>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

template <class T>
NewArray<T, 2> feature_rows(Array<const T, 2> rows, Array<const float> shift, Array<const float> scale, float clip,
                            Array<const float, 2> directions, Array<const float> product_shift,
                            Array<const float> product_scale, bool intercept) {
  const auto [n, d] = rows.shape;
  const int64_t m = directions.shape[1], factors = m ? m : d, products = product_shift.size();
  require(shift.size() == d && scale.size() == d && directions.shape[0] == d, "feature_rows: the plan has another width");
  require(products == product_scale.size() && (!products || products == factors * (factors + 1) / 2),
          "feature_rows: another number of products");
  NewArray<T, 2> out({n, intercept + d + products});
  const o2::FeaturePlan plan{d,    m, products, shift.data, scale.data, clip, directions.data, product_shift.data,
                             product_scale.data, intercept};
  nb::gil_scoped_release free;
  o2::feature_rows(plan, rows.data, n, out.view.data);
  return out;
}

template <class T, class W>
NewArray<T, 2> project(Array<const T, 2> rows, Array<const W, 2> directions, std::optional<Array<const double>> offset) {
  const auto [n, d] = rows.shape;
  const int64_t m = directions.shape[0];
  require(directions.shape[1] == d, "project: the directions have another width");
  require(!offset || offset->size() == m, "project: the offset has another width");
  NewArray<T, 2> out({n, m});
  nb::gil_scoped_release free;
  o2::project(rows.data, n, d, directions.data, offset ? offset->data : nullptr, m, out.view.data);
  return out;
}

NewArray<float, 2> user_item_rows(Array<const float, 2> rows, int64_t d_user, int64_t head, Array<const float> shift,
                                  Array<const float> scale, float clip, Array<const float, 2> users,
                                  Array<const float, 2> items) {
  const int64_t n = rows.shape[0], d = rows.shape[1] - 1, d_item = d - d_user;
  require(head >= 1 && d_user >= 0 && d_item >= 0 && shift.size() == d && scale.size() == d &&
              users.shape[0] == d_user && items.shape[0] == d_item,
          "user_item_rows: the features have another width");
  const int64_t a = users.shape[1], b = items.shape[1];
  NewArray<float, 2> out({n, head + d + (a ? a : d_user) * (b ? b : d_item)});
  const o2::UserItemPlan plan{d_user, d_item, head, shift.data, scale.data, clip, users.data, items.data, a, b};
  nb::gil_scoped_release free;
  o2::user_item_rows(plan, rows.data, n, out.view.data);
  return out;
}

template <class T>
void absorb(Array<const T, 2> rows, Array<double> count, Array<double> mean, Array<double> squares, Array<bool> binary,
            Array<float> shift, Array<float> scale) {
  const auto [n, d] = rows.shape;
  require(count.size() == 1 && mean.size() == d && squares.size() == d && binary.size() == d && shift.size() == d &&
              scale.size() == d,
          "absorb: the moments have another width");
  o2::ColumnMoments moments{count[0], mean.data, squares.data, binary.data, shift.data, scale.data};
  {
    nb::gil_scoped_release free;
    o2::absorb(rows.data, n, d, moments);
  }
  count[0] = moments.count;
}

template <class T>
void bind_rows(nb::module_& m) {
  m.def("feature_rows", &feature_rows<T>, nb::arg("rows"), nb::arg("shift"), nb::arg("scale"), nb::arg("clip"),
        nb::arg("directions"), nb::arg("product_shift"), nb::arg("product_scale"), nb::arg("intercept"),
        "Return the features of rows [n, d] by the parts of a `FeaturePlan`, [n, width].");
  m.def("absorb", &absorb<T>, nb::arg("rows"), nb::arg("count"), nb::arg("mean"), nb::arg("squares"), nb::arg("binary"),
        nb::arg("shift"), nb::arg("scale"), "Update the moments of columns with rows [n, d], in place.");
}

template <class T, class W>
void bind_project(nb::module_& m) {
  m.def("project", &project<T, W>, nb::arg("rows"), nb::arg("directions"), nb::arg("offset") = nb::none(),
        "Return rows @ directionsᵀ + offset, row by row: unlike BLAS, a row's result does not depend on other rows.");
}

// Whether single precision has all of these numbers: 0 x is 0 unless x is NaN, infinite or too large.
template <class T>
void bind_finite(nb::module_& m) {
  m.def("all_finite", [](Array<const T> row) {
    float total = 0;
    for (const T x : row.span()) total += static_cast<float>(x) * 0.0f;
    return total == 0;
  }, nb::arg("row").noconvert(), "Return whether all numbers are finite in single precision.");
}

}  // namespace

void bind_features(nb::module_& m) {
  bind_finite<float>(m);
  bind_finite<double>(m);
  m.def("within", [](Array<const double> row, double low, double high) {
    int64_t inside = 0;
    for (const double x : row.span()) inside += x >= low && x <= high;
    return inside == row.size();
  }, nb::arg("row"), nb::arg("low"), nb::arg("high"), "Return whether all numbers are from low to high.");
  bind_rows<float>(m);
  bind_rows<double>(m);
  bind_project<float, float>(m);
  bind_project<float, double>(m);
  bind_project<double, float>(m);
  bind_project<double, double>(m);
  m.def("user_item_rows", &user_item_rows, nb::arg("rows"), nb::arg("d_user"), nb::arg("head"), nb::arg("shift"),
        nb::arg("scale"), nb::arg("clip"), nb::arg("users"), nb::arg("items"),
        "Return the features of rows (slot, user, item) of `UserItems`. users [d_user, a] and items [d_item, b]: the"
        " directions to multiply, or with a = 0 or b = 0 the features themselves.");
}
