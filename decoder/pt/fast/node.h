// Nodes: straight pieces of code, from an address to the next branch whose way only the trace can
// tell, and what one packet makes of them. They fill in the rows of the fast path.
//
// Threading: one thread at a time; the image must outlive the object.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "decoder/code/code_reader.h"
#include "decoder/pt/fast/row_pool.h"

namespace tailtrace::pt {

struct Node {
  // A direct jump or call on the way; `insns` since the one before, itself included.
  struct Direct {
    std::uint64_t from = 0, to = 0, behind = 0;
    std::uint32_t insns = 0;
    RecordKind kind = RecordKind::kJump;
  };
  std::uint32_t first_direct = 0, direct_count = 0;
  Instruction end;               // the branch that ends it
  std::uint32_t tail_insns = 0;  // since the last direct, the end included
  bool has_paging = false;       // a MOV to CR3 is on the way
  bool usable = false;           // false: code is missing, or it goes on for too long
  bool lacks_code = false;       // the former: behind the last direct, or at once
  // The nodes behind a conditional end, not taken and taken, once they were asked for.
  std::array<std::uint32_t, 2> behind = {AddressTable::kNone, AddressTable::kNone};
};

// Runs code with the outcomes of one packet, and writes down what it did.
class RowFiller {
 public:
  explicit RowFiller(const CodeImage& code) : code_(code) {}

  // Fills in rows of this pool, with the code that they are of, as the member's flow.
  void use(RowPool& pool, RowPool::Member& member);

  // The row, which is put into its place; 0 when the state cannot use the packet, the complete
  // decoder has to look at it, or there is no place. REQUIRES: a TargetKey can hold the address.
  std::uint64_t fill(StateKey state, std::uint8_t bits);
  std::uint64_t fill(StateKey state, std::uint64_t ip, IpKind kind);

  CodeReader& reader(CodeMode mode);

  // SKL014: a direct branch may end the tracing without saying where it went.
  void expect_skl014(bool expect) { skl014_ = expect; }

 private:
  static constexpr std::uint32_t kMaxNodeInsns = 4096;
  static constexpr std::size_t kMaxNodes = 1u << 18;
  static constexpr std::size_t kMaxDirects = 1u << 20;
  static constexpr std::size_t kMaxPush = std::size(Pushes{}.keys);
  static constexpr std::size_t kMaxNodeDirects = 64;
  static constexpr std::size_t kMaxRunNodes = 8;

  // A transition in the making.
  struct Run {
    std::uint64_t ip = 0;
    std::uint64_t effect_start = 0;
    std::uint32_t insns = 0, branches = 0, tail = 0;
    std::array<std::uint64_t, 16> calls{};
    std::size_t call_count = 0;
    std::size_t lead_count = 0;
    bool decided = false;
    std::optional<Rows::State> next;  // none: a return's, or a target's
  };
  enum class Step : std::uint8_t { kEnd, kStopped, kNone };

  void drop();
  Node& node_at(std::uint64_t ip, CodeMode mode);
  Node& node_behind(Node& node, bool taken, std::uint64_t ip, CodeMode mode);
  std::span<const Node::Direct> directs_of(const Node& node) const {
    return {directs_.data() + node.first_direct, node.direct_count};
  }
  Node walk(std::uint64_t ip, CodeMode mode);
  Run begin(StateKey state);
  Step run_node(Run& run, const Node& node, std::size_t max_calls);
  void branch(Run& run, const Node& node, std::uint64_t to);
  void fall_through(Run& run, const Node& node);
  void decide(Run& run);
  void record(Run& run, std::uint64_t from, std::uint64_t to, RecordKind kind,
              std::uint8_t flags = 0);
  bool too_large(const Run& run) const;
  std::uint64_t fill_landing(StateKey mode, std::uint64_t target);
  std::uint64_t fill_tip(StateKey state);
  std::uint64_t fill_off(StateKey state, std::uint64_t to, IpKind kind);
  std::uint64_t fill_on(StateKey state, std::uint64_t ip);
  Step run_off(Run& run, const Node& node, std::uint64_t to, IpKind kind, Rows::State& off);
  template <class... Symbol>
  std::uint64_t put(const Run& run, Transition transition, bool returns, StateKey state,
                    Symbol... symbol);
  bool has_room(std::size_t record_count);
  std::uint32_t add_effect(const Run& run, bool returns);

  const CodeImage& code_;
  RowPool* pool_ = nullptr;
  RowPool::Member* member_ = nullptr;
  Epoch epoch_;  // of what is remembered
  bool skl014_ = false;
  std::array<std::optional<CodeReader>, 3> readers_;
  AddressTable node_numbers_[3];  // by CodeMode
  BoundedArray<Node> nodes_{kMaxNodes + kMaxRunNodes};
  BoundedArray<Node::Direct> directs_{kMaxDirects + kMaxRunNodes * kMaxNodeDirects};
  std::vector<BranchRecord> records_;  // of the run
};

}  // namespace tailtrace::pt
