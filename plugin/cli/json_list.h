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
  // The members of `head` stand before a document's list `name`, or begin each line. REQUIRES:
  // there are some; a form other than kNone.
  JsonList(LineOutput& out, JsonForm form, const nlohmann::ordered_json& head,
           std::string_view name);

  // An object's text in one line. REQUIRES: it has members.
  void put(std::string_view object);
  // Ends the document.
  void finish();

 private:
  LineOutput& out_;
  bool lines_;
  bool is_first_ = true;
  std::string head_;  // up to where more members follow
};

}  // namespace tailtrace
