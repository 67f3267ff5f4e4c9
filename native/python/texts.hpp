// A sequence of bytes as views of their texts, which stay alive as long as this does.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/typing.h>

#include <string_view>
#include <vector>

namespace o2 {

class Texts {
 public:
  explicit Texts(const nanobind::sequence& given) {
    for (nanobind::handle each : given) {
      if (!PyBytes_Check(each.ptr())) throw nanobind::type_error("texts: expected bytes");
      owners.push_back(nanobind::borrow(each));
      views.emplace_back(PyBytes_AS_STRING(each.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(each.ptr())));
    }
  }
  int64_t size() const { return static_cast<int64_t>(views.size()); }
  auto begin() const { return views.begin(); }
  auto end() const { return views.end(); }

 private:
  std::vector<nanobind::object> owners;
  std::vector<std::string_view> views;
};

}  // namespace o2
