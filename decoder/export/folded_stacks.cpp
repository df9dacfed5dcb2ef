#include "decoder/export/folded_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "decoder/base/text.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

// What parts the names of a stack, and the stack from its number, is in no name.
std::string frame_name(const Function& function) {
  std::string name = function.name;
  if (name.empty()) name = "??";
  if (function.name.empty() && !function.module.empty())
    name = fmt::format("?? ({})", base_name(function.module));
  std::replace(name.begin(), name.end(), ';', ':');
  return printable(name);
}

// All stacks as a tree: a node for each function called by the calls above it.
class StackTree {
 public:
  StackTree(const CallHistory& calls, Range counted) : calls_(calls), node_of_(calls.size() + 1) {
    nodes_.push_back({});
    for (std::uint64_t n = 1; n <= calls.size(); ++n) {
      CallSegment segment = calls.at(n);
      const Range items = {std::max(segment.items.first, counted.first),
                           std::min(segment.items.last, counted.last)};
      if (segment.function != nullptr && items.first <= items.last)
        nodes_[node_of(n)].instructions += items.size();
    }
  }

  void list(const std::function<bool(std::string_view)>& line) const {
    for (std::size_t i = 1; i < nodes_.size(); ++i)
      if (nodes_[i].instructions != 0)
        if (!line(fmt::format("{} {}", stack_text(i), nodes_[i].instructions))) return;
  }

 private:
  struct Node {
    std::size_t parent = 0;  // 0: none
    std::size_t depth = 0;
    std::string name;
    std::uint64_t instructions = 0;
  };

  // The part of the call that came before, else the caller; 0: none.
  std::uint64_t outer(const CallSegment& segment) const {
    return segment.earlier != 0 ? segment.earlier : segment.caller;
  }

  // From the outermost call that is known inwards, without recursion: stacks may be deep.
  std::size_t node_of(std::uint64_t number) {
    std::vector<std::uint64_t> open;
    while (number != 0 && node_of_[number] == 0 && open.size() <= calls_.size()) {
      open.push_back(number);
      CallSegment segment = calls_.at(number);
      number = segment.function == nullptr ? 0 : outer(segment);
    }
    std::size_t node = number == 0 ? 0 : node_of_[number];
    for (; !open.empty(); open.pop_back()) {
      CallSegment segment = calls_.at(open.back());
      if (segment.function != nullptr && (segment.earlier == 0 || node == 0))
        node = child(node, *segment.function);
      node_of_[open.back()] = node;
    }
    return node;
  }

  std::size_t child(std::size_t parent, const Function& function) {
    if (nodes_[parent].depth == kMaxFoldedDepth) return parent;
    auto [known, added] = children_.try_emplace({parent, frame_name(function)}, nodes_.size());
    if (added) nodes_.push_back({parent, nodes_[parent].depth + 1, known->first.second, 0});
    return known->second;
  }

  std::string stack_text(std::size_t node) const {
    std::vector<std::size_t> frames;
    for (; node != 0; node = nodes_[node].parent) frames.push_back(node);
    std::string text;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += (text.empty() ? "" : ";") + nodes_[*frame].name;
    return text;
  }

  const CallHistory& calls_;
  std::vector<std::size_t> node_of_;  // by segment; 0: not known yet
  std::vector<Node> nodes_;           // the first stands for no call
  std::map<std::pair<std::size_t, std::string>, std::size_t> children_;
};

}  // namespace

void list_folded_stacks(const CallHistory& calls, const std::function<bool(std::string_view)>& line,
                        Range counted) {
  StackTree(calls, counted).list(line);
}

}  // namespace tailtrace
