// Recordings at the edges, asked everything there is to ask: a right answer or a clear error.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "decoder/bundle/bundle.h"
#include "plugin/cli/history_input.h"
#include "tests/support/command_outcome.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

using nlohmann::json;

ThreadSnapshot thread_with(std::vector<BranchRecord> records) {
  ThreadSnapshot snapshot;
  snapshot.thread = {7, 7};
  snapshot.engine = "step";
  snapshot.code = std::make_shared<CodeImage>();
  snapshot.records = std::move(records);
  return snapshot;
}

BranchRecord record(RecordKind kind, Address from, Address to, std::uint32_t insns) {
  BranchRecord record;
  record.kind = kind;
  record.from = from;
  record.to = to;
  record.insns = insns;
  return record;
}

class OddRecording : public testing::Test {
 protected:
  void save(const ThreadSnapshot& snapshot) {
    auto writer = BundleWriter::create(path());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add(snapshot, ""));
    ASSERT_TRUE(writer->finish());
  }
  std::string path() const { return folder_.file("run.tt"); }

  // The one thread's answer to a question with --json; its status is 0 or `no`.
  json ask(std::vector<std::string> words, int no = 0) {
    words.insert(words.begin() + 1, "--json");
    CommandOutcome outcome = outcome_of(words);
    EXPECT_TRUE(outcome.status == 0 || outcome.status == no) << words[0] << outcome.err;
    json answer = json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << words[0] << outcome.out << outcome.err;
    return answer;
  }

  void ask_everything() {
    for (const char* verb : {"info", "find", "stats", "coverage"}) ask({verb, path()}, 1);
    for (const char* verb : {"info", "history", "calls", "find", "stats", "coverage"}) {
      CommandOutcome shown = outcome_of({verb, path()});
      EXPECT_TRUE(shown.status == 0 || shown.status == 1) << verb << shown.err;
    }
    for (const char* verb : {"last", "hits", "why"}) {
      CommandOutcome outcome = outcome_of({verb, path(), "main"});
      EXPECT_EQ(outcome.status, 1) << verb << outcome.out << outcome.err;
    }
    for (const char* form :
         {"folded", "chrome", "perfetto", "html", "drcov", "arrow", "npy", "btrace", "perf-data"}) {
      CommandOutcome outcome = outcome_of({"export", std::string("--format=") + form, "-o",
                                           folder_.file(std::string("out.") + form), path()});
      EXPECT_TRUE(outcome.status == 0 || outcome.err.starts_with("error: ")) << form << outcome.err;
    }
    EXPECT_EQ(outcome_of({"diff", path(), path()}).status, 0);
  }

  TempFolder folder_;
};

TEST_F(OddRecording, WithNothingInIt) {
  save(thread_with({}));
  EXPECT_EQ(ask({"info", path()})["threads"][0]["instructions"], 0);
  EXPECT_EQ(ask({"info", path()})["threads"][0]["gaps"], 0);
  for (const char* verb : {"history", "calls"}) {
    CommandOutcome outcome = outcome_of({verb, "--json", path()});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("the history is empty"), std::string::npos) << outcome.err;
  }
  ask_everything();
}

TEST_F(OddRecording, IsFoundByItsDescriptions) {
  save(thread_with({}));
  for (const char* name : {"bundle.json", "trace.json"}) {
    CommandOutcome outcome = outcome_of({"info", path() + "/" + name});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("thread 7.7"), std::string::npos) << outcome.out;
  }
}

TEST_F(OddRecording, ThatIsOneGap) {
  save(thread_with({record(RecordKind::kEnable, {}, {0x401000}, 0),
                    record(RecordKind::kDisable, {0x402000}, {}, 5)}));
  json history = ask({"history", path(), "all"});
  ASSERT_EQ(history["items"].size(), 1u);
  EXPECT_EQ(history["items"][0]["gap"], "no-code");
  EXPECT_EQ(history["gaps"], 1);
  EXPECT_EQ(outcome_of({"history", "--strict", path()}).status, 6);
  ask_everything();
}

TEST_F(OddRecording, OfTenThousandThreads) {
  constexpr int kThreads = 10'000;
  ThreadSnapshot snapshot = *ToyProgram(1, 3, 4).run(1, 100).snapshot;
  snapshot.thread = {7, kThreads};
  save(snapshot);
  // All but the one that was saved are missing, which is said of each that is asked for.
  std::ifstream in(path() + "/bundle.json");
  json bundle = json::parse(in), threads = json::array();
  json saved = bundle["threads"][0];
  // As the always-on recorder tells how each stood.
  for (int i = 0; i < 20; ++i) saved["registers"]["r" + std::to_string(i)] = "0x7ffdeadbeef0";
  for (int i = 0; i < 40; ++i) saved["stack"].push_back("0x7ffdeadbeef0");
  for (int tid = 1; tid < kThreads; ++tid) {
    threads.push_back(saved);
    threads.back()["tid"] = tid;
    threads.back()["file"] = tid + 1;
  }
  threads.push_back(saved);
  bundle["threads"] = threads;
  std::ofstream(path() + "/bundle.json") << bundle;
  auto found = recorded_threads(path());
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), static_cast<std::size_t>(kThreads));
  auto last = open_recorded(found->back(), ~0ull);
  ASSERT_TRUE(last) << last.error().to_string();
  EXPECT_EQ(last->source->record_count(), snapshot.records.size());
  EXPECT_EQ(last->stack.size(), 40u);
  for (ThreadSource& thread : *found)
    EXPECT_EQ(open_recorded(thread, ~0ull).has_value(), thread.thread.tid == kThreads);
  CommandOutcome one = outcome_of({"history", "--thread=10000", path()});
  EXPECT_EQ(one.status, 0) << one.err;
  CommandOutcome missing = outcome_of({"history", "--thread=4711", path()});
  EXPECT_EQ(missing.status, 7) << missing.err;
  EXPECT_NE(missing.err.find("4712.records"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace tailtrace
