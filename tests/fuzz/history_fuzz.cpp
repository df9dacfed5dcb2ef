// Records and code from anywhere: a history of them says the same forwards, backwards and at
// random, its calls cover it without a hole, what decided lies further and further back, and its
// listing ends.
#include <cassert>

#include "decoder/export/call_spans.h"
#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/call_path.h"
#include "decoder/history/listing.h"
#include "decoder/history/queries/why.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

constexpr std::size_t kCode_bytes = 512;

// The code's first bytes, then records.
std::shared_ptr<ThreadSnapshot> snapshot_from(ByteSpan input) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  auto image = std::make_shared<CodeImage>();
  ByteSpan code = input.first(std::min(kCode_bytes, input.size()));
  bool added = image->add(ToyProgram::kBase, Bytes(code.begin(), code.end())).has_value() &&
               image->add(ToyProgram::kBase + 64, Bytes(16, 0x90), {1}).has_value() &&
               image->forget(ToyProgram::kBase + 128, 16, {2}).has_value();
  assert(added);
  (void)added;
  snapshot->code = image;
  ByteSpan rest = input.subspan(code.size());
  snapshot->records.resize(rest.size() / sizeof(BranchRecord));
  if (!snapshot->records.empty())
    std::memcpy(snapshot->records.data(), rest.data(),
                snapshot->records.size() * sizeof(BranchRecord));
  return snapshot;
}

// Every 32 bytes are a function, but for those that are none.
class Grid : public Symbolizer {
 public:
  Grid() {
    for (std::uint64_t i = 0; i < kCode_bytes / 32; ++i) {
      Address begin = ToyProgram::kBase + i * 32;
      std::string name = i % 5 == 4   ? ""
                         : i % 7 == 3 ? "_Unwind_Resume"
                                      : "f" + std::to_string(i / 2);
      // Some in two parts.
      Address entry = i % 3 == 1 && i % 2 == 1 ? begin - 32 : begin;
      if (name.empty()) entry = {};
      functions_.push_back({begin, begin + 32, entry, name, name, "", "", ""});
    }
  }
  const Function& function_at(Address address) override {
    if (address < ToyProgram::kBase) return below_;
    std::uint64_t index = (address - ToyProgram::kBase) / 32;
    return index < functions_.size() ? functions_[index] : above_;
  }
  std::optional<Address> fde_begin(Address address, Epoch) override {
    return Address{address.value & ~15ull};
  }
  std::optional<SourceLine> line_at(Address address, Epoch) override {
    return SourceLine{"file", static_cast<unsigned>(address.value % 7)};
  }

 private:
  std::vector<Function> functions_;
  Function below_{{}, ToyProgram::kBase, {}, {}, {}, {}, {}, {}};
  Function above_{ToyProgram::kBase + kCode_bytes, {~0ull}, {}, {}, {}, {}, {}, {}};
};

bool same(const HistoryItem& a, const HistoryItem& b) {
  return a.number == b.number && a.is_gap == b.is_gap && a.gap.reason == b.gap.reason &&
         a.gap.lost == b.gap.lost && a.instruction.address == b.instruction.address &&
         a.epoch == b.epoch && a.branch == b.branch;
}

void check_walks(const History& history) {
  std::vector<HistoryItem> forward;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid() && forward.size() < 3000; cursor.next())
    forward.push_back(cursor.item());
  HistoryCursor other(history);
  for (std::size_t i = forward.size(); i != 0; i -= std::min<std::size_t>(i, 7)) {
    other.seek(i);
    assert(same(other.item(), forward[i - 1]));
  }
  cursor.seek(forward.size());
  for (std::size_t i = forward.size(); cursor.valid(); cursor.prev()) {
    assert(same(cursor.item(), forward[i - 1]));
    --i;
  }
}

// Each inside of another one or apart from it.
void check_spans(const CallHistory& calls) {
  std::vector<CallSpan> open;
  for (const CallSpan& span : call_spans(calls)) {
    while (!open.empty() && open.back().last < span.first) open.pop_back();
    assert(span.first <= span.last && (open.empty() || span.last <= open.back().last));
    open.push_back(span);
  }
}

void check_calls(const History& history) {
  Grid symbols;
  auto calls = CallHistory::make(history, symbols, {1, history.size()});
  if (!calls) return;
  std::uint64_t next = 1;
  for (std::uint64_t n = 1; n <= calls->size(); ++n) {
    CallSegment segment = calls->at(n);
    assert(segment.items.first == next && segment.items.size() != 0 && segment.level >= 0);
    assert(segment.earlier < n && (segment.later == 0 || segment.later > n));
    next = segment.items.last + 1;
  }
  assert(next == history.size() + 1);
  check_spans(*calls);
  if (history.size() != 0) {
    const CallPath path = call_path(history, symbols, *calls, history.size(), 50);
    assert(path.frames.size() <= 50);
    for (const PathFrame& frame : path.frames)
      assert(frame.function != nullptr && frame.item != 0 && frame.item <= history.size());
  }
  if (calls->size() != 0)
    calls_text(history, *calls, symbols, {1, std::min<std::uint64_t>(calls->size(), 200)}, {},
               1 << 16);
}

// What decided lies further and further back.
void check_reasons(const History& history) {
  if (history.size() == 0) return;
  Grid symbols;
  for (std::uint64_t item : {history.size() + 1, history.size() / 2 + 1}) {
    auto reasons = find_reasons(history, symbols, item, 200);
    if (!reasons) continue;
    std::uint64_t before = std::min(item, history.size());
    for (const Decision& decision : reasons->decisions) {
      assert(decision.item != 0 && decision.item <= before);
      before = decision.item;
    }
    assert(reasons->end_item <= history.size());
  }
}

Bytes input_of(Bytes code, std::span<const BranchRecord> records) {
  code.resize(kCode_bytes);
  const auto* raw = reinterpret_cast<const std::uint8_t*>(records.data());
  code.insert(code.end(), raw, raw + records.size_bytes());
  return code;
}

// Two stacks that are left in one function, which is known by where that returns.
Bytes stacks_that_take_turns() {
  constexpr std::uint64_t kMain = 0, kLeave = 64, kSwitch = 160, kFiber = 256;  // functions
  Bytes code(kCode_bytes);
  auto put = [&](std::uint64_t at, const char* hex) {
    std::ranges::copy(*from_hex(hex), &code[at]);
  };
  put(kMain, "90ffd090ffd0");
  put(kLeave, "90ffd090c3");
  put(kSwitch, "488b26c3");  // mov (%rsi),%rsp; ret
  put(kFiber, "90ffd090ffd0");
  std::vector<BranchRecord> records = {{{}, ToyProgram::kBase, 0, 0, RecordKind::kEnable, 0, 0}};
  auto go = [&](std::uint64_t from, std::uint64_t to, RecordKind kind) {
    records.push_back({ToyProgram::kBase + from, ToyProgram::kBase + to, 0, 2, kind, 0, 0});
  };
  auto leave_from = [&](std::uint64_t call, std::uint64_t to) {
    go(call, kLeave, RecordKind::kIndirectCall);
    go(kLeave + 1, kSwitch, RecordKind::kIndirectCall);
    go(kSwitch + 3, to, RecordKind::kReturn);
  };
  leave_from(kMain + 1, kFiber);
  leave_from(kFiber + 1, kLeave + 3);
  go(kLeave + 4, kMain + 3, RecordKind::kReturn);
  leave_from(kMain + 4, kLeave + 3);
  go(kLeave + 4, kFiber + 3, RecordKind::kReturn);
  return input_of(std::move(code), records);
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds = {stacks_that_take_turns()};
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    ToyProgram program(seed, 3, 4);
    ToyRun run = program.run(seed, 300, true);
    Bytes code(kCode_bytes);
    program.image()->read(ToyProgram::kBase, code);
    seeds.push_back(input_of(std::move(code), run.snapshot->records));
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  History history(snapshot_from(input));
  check_walks(history);
  check_calls(history);
  check_reasons(history);
  Grid symbols;
  if (history.size() != 0)
    instructions_text(history, symbols, {1, std::min<std::uint64_t>(history.size(), 200)}, {},
                      1 << 16);
}

}  // namespace tailtrace
