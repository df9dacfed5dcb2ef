#include "plugin/server/rsp/feature_list.h"

#include <algorithm>

namespace tailtrace::rsp {

FeatureList FeatureList::parse(std::string_view text) {
  FeatureList list;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(';'), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    std::size_t mark = item.find('=');
    if (mark == std::string_view::npos)
      mark = item.find_last_of("+-?") == item.size() - 1 ? item.size() - 1 : item.size();
    list.items_.emplace_back(item.substr(0, mark), item.substr(mark));
  }
  return list;
}

std::string FeatureList::to_string() const {
  std::string text;
  for (const auto& [name, value] : items_) {
    if (!text.empty()) text += ';';
    text += name;
    text += value;
  }
  return text;
}

bool FeatureList::has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const auto& item) { return item.first == name && item.second == "+"; });
}

void FeatureList::set(std::string_view name, std::string_view value) {
  auto it = std::find_if(items_.begin(), items_.end(),
                         [&](const auto& item) { return item.first == name; });
  if (it == items_.end())
    items_.emplace_back(name, value);
  else
    it->second = value;
}

void FeatureList::remove(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

void FeatureList::remove_all(std::string_view beginning) {
  std::erase_if(items_, [&](const auto& item) { return item.first.starts_with(beginning); });
}

}  // namespace tailtrace::rsp
