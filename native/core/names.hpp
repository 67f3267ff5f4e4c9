// Names of hashed features, by hash: to show them again. Readers of dictionaries note what they read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace o2 {

class FeatureNames {
 public:
  struct Name {
    uint32_t hash;
    int64_t path;      // length of the path within the text
    std::string text;  // `user.age`, or path=word: `user.id=u17`
  };

  // limit: of names; beyond it, all are forgotten.
  explicit FeatureNames(size_t limit) : limit(limit), table(1024) {}

  const size_t limit;
  const std::vector<Name>& all() const { return names; }

  bool has(uint32_t hash) const {
    const size_t mask = table.size() - 1;
    for (size_t i = hash & mask; table[i].place != 0; i = (i + 1) & mask)
      if (table[i].hash == hash) return true;
    return false;
  }

  // Add a name whose hash is new.
  void add(Name name) {
    if (2 * names.size() >= table.size()) {
      table.assign(2 * table.size(), {});
      for (size_t i = 0; i < names.size(); i++) put(names[i].hash, i);
    }
    names.push_back(std::move(name));
    put(names.back().hash, names.size() - 1);
  }

  void forget_if_too_many() {
    if (names.size() <= limit) return;
    names.clear();
    table.assign(1024, {});
  }

 private:
  struct Slot {
    uint32_t hash = 0, place = 0;  // index in `names`, from 1; 0: empty
  };
  std::vector<Name> names;
  std::vector<Slot> table;  // open addressing; a power of two

  void put(uint32_t hash, size_t index) {
    const size_t mask = table.size() - 1;
    size_t i = hash & mask;
    while (table[i].place != 0) i = (i + 1) & mask;
    table[i] = {hash, static_cast<uint32_t>(index + 1)};
  }
};

}  // namespace o2
