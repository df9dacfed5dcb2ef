// What a debugger is given at a stop costs as much as that, however much is kept.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "plugin/server/gdb/trace_service.h"
#include "plugin/server/lldb/lldb_trace.h"
#include "plugin/server/monitor/monitor_history.h"
#include "plugin/server/rsp/frame.h"
#include "tests/support/fake_link.h"

namespace tailtrace {
namespace {

using Words = std::vector<std::string>;

constexpr ThreadId kThread{1, 1};
constexpr Address kLoop{0x1000}, kJump{0x1001};  // nop; jmp kLoop
constexpr std::uint64_t kRecords = 1ull << 40;   // kept; whoever asks for all of them has none
constexpr std::uint64_t kInsns = 2;              // of each

constexpr std::array<std::uint8_t, 3> kCode = {0x90, 0xeb, 0xfd};

BranchRecord round_of_the_loop() {
  BranchRecord record;
  record.from = kJump;
  record.to = kLoop;
  record.insns = kInsns;
  record.kind = RecordKind::kJump;
  return record;
}

// A thread in a loop. Of `idle` records out of `of` nothing was executed.
class LoopEngine final : public Engine {
 public:
  std::uint64_t idle = 0, of = 1;
  std::uint64_t head_ = kRecords;
  std::uint64_t most = 0;  // records asked for at once

  std::string_view name() const override { return "loop"; }
  Result<void> start(ThreadId) override { return {}; }
  Result<void> stop(ThreadId) override { return {}; }
  bool is_recording(ThreadId) const override { return true; }
  Result<Position> head(ThreadId) const override { return Position{head_}; }
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override {
    most = std::max(most, limit);
    if (limit > 1 << 20) return fail(ErrorCode::kUsage, "so many would take too long");
    ThreadSnapshot snapshot;
    snapshot.thread = thread;
    snapshot.first = {head_ - limit};
    snapshot.code = code_;
    for (std::uint64_t i = 0; i < limit; ++i) {
      BranchRecord record = round_of_the_loop();
      if ((snapshot.first.value + i) % of < idle) {
        record = {stop.pc, stop.pc, 0, 0, RecordKind::kMarker, kFlagAsync, 0};
      }
      snapshot.records.push_back(record);
    }
    BranchRecord end;
    end.from = stop.pc;
    end.kind = RecordKind::kDisable;
    end.flags = kFlagSynthetic | kFlagAsync;
    end.extra = static_cast<std::uint16_t>(EdgeCause::kDebugger);
    snapshot.records.push_back(end);
    return snapshot;
  }

 private:
  static std::shared_ptr<const CodeImage> make_code() {
    auto image = std::make_shared<CodeImage>();
    EXPECT_TRUE(image->add(kLoop, Bytes(kCode.begin(), kCode.end())));
    return image;
  }
  std::shared_ptr<const CodeImage> code_ = make_code();
};

// Every register holds the address of the loop.
std::string registers() {
  std::string one = "0010000000000000", all;
  for (int i = 0; i < 24; ++i) all += one;
  return all;
}

// As much of it as an answer holds, in hexadecimal.
std::string page_of_the_loop() {
  Bytes page(2048, 0);
  std::ranges::copy(kCode, page.begin());
  return to_hex(page);
}

struct Stand {
  Stand() {
    below.debugger_selected(kThread);
    options.since_start = true;
  }
  static Words says(const std::string& request) {
    if (request == "g") return {registers()};
    if (request == "m1000,800") return {page_of_the_loop()};
    if (request == "m1800,800") return {std::string(4096, '0')};
    if (request == "qfThreadInfo") return {"mp1.1"};
    if (request == "qsThreadInfo") return {"l"};
    return {"OK"};
  }
  std::uint64_t insns(const ThreadSnapshot& snapshot) {
    std::uint64_t sum = 0;
    for (const BranchRecord& record : snapshot.records) sum += record.insns;
    return sum;
  }
  std::string answer(TraceService& service, std::string_view packet) {
    auto text = service.answer(packet);
    return text ? text->value_or("?") : text.error().to_string();
  }
  // All pieces of a document, or a refusal.
  std::string read(TraceService& service, std::string_view annex) {
    std::string document;
    for (;;) {
      std::string piece =
          answer(service, fmt::format("qXfer:btrace:read:{}:{:x},fff", annex, document.size()));
      if (piece.starts_with("E")) return piece;
      document += rsp::unescape(piece.substr(1));
      if (piece.starts_with("l")) return document;
    }
  }

  EndSignals signals;
  Below below{std::make_unique<FakeLink>(says), signals};
  LoopEngine engine;
  Recorder recorder{below, engine, nullptr};
  ServeOptions options;
};

std::size_t times(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(NewestHistory, HoldsWhatIsAskedForAndLittleMore) {
  Stand stand;
  auto thread = stand.recorder.start(kThread);
  ASSERT_TRUE(thread) << thread.error().to_string();
  auto newest = stand.recorder.newest(**thread, 1000);
  ASSERT_TRUE(newest) << newest.error().to_string();
  EXPECT_GE(stand.insns(*newest), 1000u);
  EXPECT_LE(stand.insns(*newest), 2000u);
}

TEST(NewestHistory, LooksFurtherWhereRecordsHoldNoInstructions) {
  Stand stand;
  stand.engine.of = 100;
  stand.engine.idle = 99;
  auto thread = stand.recorder.start(kThread);
  auto newest = stand.recorder.newest(**thread, 1000);
  ASSERT_TRUE(newest) << newest.error().to_string();
  EXPECT_GE(stand.insns(*newest), 1000u);
  EXPECT_LE(stand.insns(*newest), 2100u);
}

TEST(NewestHistory, IsAllThereIsOfAShortOne) {
  class Short final : public Engine {
   public:
    std::string_view name() const override { return "short"; }
    Result<void> start(ThreadId) override { return {}; }
    Result<void> stop(ThreadId) override { return {}; }
    bool is_recording(ThreadId) const override { return true; }
    Result<Position> head(ThreadId) const override { return Position{3}; }
    Result<ThreadSnapshot> snapshot(ThreadId, const Stop&, std::uint64_t limit) override {
      ThreadSnapshot snapshot;
      snapshot.records.resize(std::min<std::uint64_t>(limit, 3), round_of_the_loop());
      return snapshot;
    }
  } engine;
  Stand stand;
  Recorder recorder(stand.below, engine, nullptr);
  auto thread = recorder.start(kThread);
  EXPECT_EQ(recorder.newest(**thread, 1'000'000)->records.size(), 3u);
  EXPECT_EQ(recorder.newest(**thread, 0)->records.size(), 1u);
}

TEST(NewestHistory, IsWhatGdbIsGivenAsBlocks) {
  Stand stand;
  TraceService service(stand.options, stand.below, stand.recorder);
  EXPECT_EQ(stand.answer(service, "Qbtrace-conf:bts:size=0x1000"), "OK");
  ASSERT_EQ(stand.answer(service, "Qbtrace:bts"), "OK");
  stand.options.handover_instructions_bts = 10'000;
  EXPECT_EQ(times("<block ", stand.read(service, "all")), 5000u);
  EXPECT_LE(stand.engine.most, 10'000u);
}

TEST(NewestHistory, ThatGdbHasNotSeenIsOneTooLongWhereItIsGivenLess) {
  Stand stand;
  stand.options.handover_instructions_bts = 10'000;
  TraceService service(stand.options, stand.below, stand.recorder);
  EXPECT_EQ(stand.answer(service, "Qbtrace-conf:bts:size=0x1000"), "OK");
  ASSERT_EQ(stand.answer(service, "Qbtrace:bts"), "OK");
  stand.read(service, "all");
  stand.engine.head_ += 100;
  EXPECT_EQ(times("<block ", stand.read(service, "delta")), 101u);
  EXPECT_EQ(times("<block ", stand.read(service, "new")), 0u);
  stand.engine.head_ += 1'000'000;
  EXPECT_EQ(stand.read(service, "delta"), "E.Overflow.");
  EXPECT_EQ(times("<block ", stand.read(service, "new")), 5000u);
  EXPECT_LE(stand.engine.most, 10'000u);
}

TEST(NewestHistory, IsWhatGdbIsGivenAsPt) {
  Stand stand;
  stand.options.handover_instructions_pt = 10'000;
  TraceService service(stand.options, stand.below, stand.recorder);
  EXPECT_EQ(stand.answer(service, "Qbtrace-conf:pt:size=0x1000"), "OK");
  ASSERT_EQ(stand.answer(service, "Qbtrace:pt"), "OK");
  EXPECT_EQ(times("<raw>", stand.read(service, "all")), 1u);
  EXPECT_LE(stand.engine.most, 20'000u);
}

// GDB always names a buffer's size.
TEST(NewestHistory, IsNoMoreThanTheUserHasSaidWhateverTheBuffer) {
  Stand stand;
  stand.options.handover_instructions_pt = stand.options.handover_instructions_bts = 100;
  stand.options.handover_instructions_lldb = 100;
  stand.options.handover_is_said = true;
  TraceService service(stand.options, stand.below, stand.recorder);
  EXPECT_EQ(stand.answer(service, "Qbtrace-conf:pt:size=0x4000"), "OK");
  ASSERT_EQ(stand.answer(service, "Qbtrace:pt"), "OK");
  EXPECT_EQ(times("<raw>", stand.read(service, "all")), 1u);
  EXPECT_LE(stand.engine.most, 200u);
  EXPECT_EQ(stand.answer(service, "Qbtrace:off"), "OK");
  EXPECT_EQ(stand.answer(service, "Qbtrace-conf:bts:size=0x10000"), "OK");
  ASSERT_EQ(stand.answer(service, "Qbtrace:bts"), "OK");
  EXPECT_EQ(times("<block ", stand.read(service, "all")), 50u);
  LldbTrace trace(stand.options, stand.below, stand.recorder);
  for (std::string_view packet :
       {R"(jLLDBTraceStart:{"type":"intel-pt","tids":[1],"iptTraceSize":65536,"enableTsc":false})",
        R"(jLLDBTraceGetState:{"type":"intel-pt"})"})
    ASSERT_TRUE(trace.answer(rsp::escape(packet)));
  EXPECT_LE(stand.engine.most, 200u);
}

TEST(NewestHistory, IsWhatLldbIsGiven) {
  Stand stand;
  LldbTrace trace(stand.options, stand.below, stand.recorder);
  auto ask = [&](std::string_view packet) {
    auto text = trace.answer(rsp::escape(packet));
    return text ? text->value_or("?") : text.error().to_string();
  };
  ASSERT_EQ(ask(R"(jLLDBTraceStart:{"type":"intel-pt","tids":[1],"iptTraceSize":4096,)"
                R"("enableTsc":false})"),
            "OK");
  EXPECT_EQ(times("\"tid\":1", ask(R"(jLLDBTraceGetState:{"type":"intel-pt"})")), 1u);
  EXPECT_LE(stand.engine.most, 100'000u);
}

// A last word that names no thread is the command's own, whatever it begins with.
TEST(MonitorHistory, TakesOnlyAThreadForAThread) {
  Stand stand;
  stand.engine.head_ = 10;
  ASSERT_TRUE(stand.recorder.start(kThread));
  MonitorHistory history(stand.below, stand.recorder);
  auto says = [&](std::string_view command) {
    auto text = history.answer(command);
    return text ? text->value_or("?") : text.error().to_string();
  };
  for (const char* good : {"hits 5 push", "hits 5 p1", "hits 5 push p1.1", "items -2 2 p1.1"})
    EXPECT_EQ(times("tailtrace.items/1", says(good)), 1u) << good << ": " << says(good);
  EXPECT_EQ(times("hits LIMIT LOCATION", says("hits 5 p1.1")), 1u);
  EXPECT_EQ(times("not recorded", says("hits 5 push p1.2")), 1u);
}

}  // namespace
}  // namespace tailtrace
