// JsonList: objects printed as they come, however many they are: as lines, or as a list in one
// document, an object a line.
//
// Threading: one thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "plugin/cli/line_output.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {

class JsonList {
 public:
  // A document has the members of `head` before its list `name`; a line begins with those of
  // `line_head`. REQUIRES: neither is empty; a form other than kNone.
  JsonList(LineOutput& out, JsonForm form, const nlohmann::ordered_json& head,
           std::string_view name, const nlohmann::ordered_json& line_head);

  // An object's text in one line. REQUIRES: it has members.
  void put(std::string_view object);
  // Ends the document.
  void finish();

 private:
  LineOutput& out_;
  bool lines_;
  bool is_first_ = true;
  std::string line_head_;  // up to where an object's members go on
};

}  // namespace tailtrace
