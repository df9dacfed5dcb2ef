// The lists of features that a debugger and a server send each other in qSupported.
//
// Threading: values, no shared state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tailtrace::rsp {

// Items in their order: `name+`, `name-`, `name?`, `name=value`. An item that is none of these is
// kept as it is.
class FeatureList {
 public:
  static FeatureList parse(std::string_view text);
  std::string to_string() const;

  bool has(std::string_view name) const;  // `name+`
  // Replaces the item or adds it at the end; `value` is "+", "-" or "=value".
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  void remove_all(std::string_view beginning);  // whose names begin so

 private:
  // The second part begins with the character that ends the name.
  std::vector<std::pair<std::string, std::string>> items_;
};

}  // namespace tailtrace::rsp
