#include "plugin/cli/json_list.h"

#include "decoder/base/json_text.h"

namespace tailtrace {

JsonList::JsonList(LineOutput& out, JsonForm form, const nlohmann::ordered_json& head,
                   std::string_view name)
    : out_(out), lines_(form == JsonForm::kLines), head_(json_text(head)) {
  head_.back() = ',';
  if (!lines_) out_.print(FMT_COMPILE("{}\"{}\":["), head_, name);
}

void JsonList::put(std::string_view object) {
  if (lines_) {
    out_.put(head_);
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
