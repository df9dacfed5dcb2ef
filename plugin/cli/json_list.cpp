#include "plugin/cli/json_list.h"

#include "decoder/base/json_text.h"

namespace tailtrace {
namespace {

// An object's members, and room for more.
std::string open_members(const nlohmann::ordered_json& object) {
  std::string text = json_text(object);
  text.back() = ',';
  return text;
}

}  // namespace

JsonList::JsonList(LineOutput& out, JsonForm form, const nlohmann::ordered_json& head,
                   std::string_view name, const nlohmann::ordered_json& line_head)
    : out_(out), lines_(form == JsonForm::kLines), line_head_(open_members(line_head)) {
  if (!lines_) out_.print(FMT_COMPILE("{}\"{}\":["), open_members(head), name);
}

void JsonList::put(std::string_view object) {
  if (lines_) {
    out_.put(line_head_);
    out_.put(object.substr(1));
    out_.put("\n");
  } else {
    out_.put(is_first_ ? "\n" : ",\n");
    out_.put(object);
  }
  is_first_ = false;
}

void JsonList::finish() {
  if (!lines_) out_.put(is_first_ ? "]}\n" : "\n]}\n");
}

}  // namespace tailtrace
