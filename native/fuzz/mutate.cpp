// Runs a fuzzer on changed seeds for some seconds, for compilers without libFuzzer:
//
//     fuzz_json SECONDS SEED FILES...
//
// Each file is one seed, and so is each of its first lines. An input that fails is written to failed-input.
#include <sanitizer/common_interface_defs.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzzing.hpp"

namespace {

constexpr size_t LONGEST = 1 << 14;  // bytes of an input
constexpr size_t LINES = 200;        // of a file

const std::vector<std::string> TOKENS = {
    "{", "}", "[", "]", ":", ",", "\"", "\\", "\n", "\r\n", " ", "\t", "_", "|", "'", "\"_multi\":[", "{\"a\":", "[[", "{}",
    "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\udc00", "\\u00", "\\n", "\\q", "\xc3\xa9", "\xff", "\xed\xa0\x80", "\xf0\x9f\x98\x80",
    "\xe0\x9f\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xc1\xbf", "\xc2\x80",
    "\xc3", "\x01", std::string(1, '\0'), "0", "-0", "1e400", "1e-400", "5e-324", "3.4028235e38", "3.5e38", "1e22",
    "9007199254740993", "18446744073709551616", "0.1234567890123456789012345", "-", "1.", ".5", "1e", "1e+", "00", "1e99999999999",
    "null", "true", "false", "nul", "\"_label_cost\":", "\"_label_Action\":", "\"_labelIndex\":", "\"a\":[1,2]", "\"p\":[0.5,0.5]",
    "\"_skipLearn\":", "\"_outcomes\":", "\"_label_ca\":", "\"EventId\":", "\"c\":", "shared |", "|a b:1", "0:1:0.5 |", "\n\n"};

const uint8_t* current = nullptr;
size_t current_size = 0;

void keep_input() {
  const auto* const bytes = reinterpret_cast<const char*>(current);
  std::ofstream("failed-input", std::ios::binary).write(bytes, static_cast<std::streamsize>(current_size));
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, unsigned seed) : seeds(std::move(seeds)), generator(seed) {}

  std::string next() {
    std::string text = one_of(seeds);
    for (size_t k = below(7); k-- > 0;) change(text);
    text.resize(std::min(text.size(), LONGEST));
    return text;
  }

 private:
  std::vector<std::string> seeds;
  std::mt19937_64 generator;

  size_t below(size_t n) { return n ? generator() % n : 0; }
  const std::string& one_of(const std::vector<std::string>& all) { return all[below(all.size())]; }

  void change(std::string& text) {
    const size_t at = below(text.size() + 1);
    switch (below(9)) {
      case 0: if (at < text.size()) text[at] = static_cast<char>(below(256)); break;
      case 1: if (at < text.size()) text[at] ^= static_cast<char>(1 << below(8)); break;
      case 2: text.erase(at, 1 + below(12)); break;
      case 3: text.insert(at, one_of(TOKENS)); break;
      case 4: text.replace(at, std::min(text.size() - at, below(6)), one_of(TOKENS)); break;
      case 5: text.resize(at); break;
      case 6: text.insert(below(text.size() + 1), text.substr(at, below(60))); break;
      case 7: {
        const std::string& other = one_of(seeds);
        text.insert(at, other.substr(below(other.size()), below(200)));
        break;
      }
      default: {  // deeply nested
        const std::string& token = one_of(TOKENS);
        const size_t times = below(100);
        for (size_t i = 0; i < times; i++) text.insert(at, token);
      }
    }
  }
};

std::vector<std::string> seeds_of(int n, char** files) {
  std::vector<std::string> seeds{"", "{}", "[]", "\n"};
  for (int i = 0; i < n; i++) {
    std::ifstream file(files[i], std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    if (whole.size() <= LONGEST) seeds.push_back(whole);
    size_t first = 0;
    for (size_t line = 0; line < LINES && first < whole.size(); line++) {
      const size_t stop = std::min(whole.find('\n', first), whole.size());
      if (stop - first <= LONGEST) seeds.push_back(whole.substr(first, stop - first));
      first = stop + 1;
    }
  }
  return seeds;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: %s SECONDS SEED FILES...\n", arguments[0]);
    return 2;
  }
  __sanitizer_set_death_callback(keep_input);                // findings of the sanitizers
  std::signal(SIGABRT, [](int) { keep_input(), std::_Exit(1); });  // failed checks
  const auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(arguments[1]));
  std::vector<std::string> seeds = seeds_of(count - 3, arguments + 3);
  long inputs = 0;
  const auto run = [&](const std::string& text) {
    current = reinterpret_cast<const uint8_t*>(text.data()), current_size = text.size();
    LLVMFuzzerTestOneInput(current, current_size);
    inputs++;
  };
  for (const std::string& seed : seeds) run(seed);
  Mutator mutator(std::move(seeds), static_cast<unsigned>(std::atol(arguments[2])));
  while (std::chrono::steady_clock::now() < stop) run(mutator.next());
  std::printf("%ld inputs, no finding\n", inputs);
}
