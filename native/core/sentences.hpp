// Texts among the strings of contexts: their words, and pairs of neighbours, are features instead of the whole string.
#pragma once
#include <string>
#include <string_view>

namespace o2 {

constexpr int LEAST_WORDS = 3;  // a string with fewer words is a category

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Letters and digits, and all that is not ASCII.
inline bool is_in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

// Whether at least three words, with blanks between them, are in a string.
inline bool is_text(std::string_view text) {
  int words = 0;
  bool inside = false;
  for (const char c : text) {
    if (is_blank(c)) {
      inside = false;
    } else if (!inside && is_in_word(c)) {
      inside = true;
      if (++words == LEAST_WORDS) return true;
    }
  }
  return false;
}

// Calls `each` with the words of a text, ASCII in lower case, and after each with the pair that it ends: "reset password".
template <class Each>
void each_word(std::string_view text, Each&& each) {
  std::string before, pair;
  for (size_t at = 0; at < text.size();) {
    if (!is_in_word(text[at])) {
      at++;
      continue;
    }
    std::string word;
    for (; at < text.size() && is_in_word(text[at]); at++)
      word.push_back(text[at] >= 'A' && text[at] <= 'Z' ? static_cast<char>(text[at] - 'A' + 'a') : text[at]);
    each(std::string_view(word));
    if (!before.empty()) each(std::string_view(pair.assign(before).append(" ").append(word)));
    before = std::move(word);
  }
}

}  // namespace o2
