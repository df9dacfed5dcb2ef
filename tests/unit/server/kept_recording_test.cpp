#include "plugin/provider/kept_recording.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <thread>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

ThreadSnapshot empty_history_of(ThreadId thread) {
  ThreadSnapshot snapshot;
  snapshot.thread = thread;
  snapshot.engine = "pt";
  snapshot.code = std::make_shared<CodeImage>();
  BranchRecord stop{};
  stop.kind = RecordKind::kDisable;
  stop.from = {0x1000};
  snapshot.records = {stop};
  return snapshot;
}

TEST(KeptRecording, HasTheNamesThatThreadsHadLast) {
  TempFolder folder;
  const std::string path = folder.file("kept");
  auto kept = KeptRecording::create(path);
  ASSERT_TRUE(kept) << kept.error().to_string();
  ThreadId named{::getpid(), 0}, gone{::getpid(), 1};
  std::thread([&] {
    ::prctl(PR_SET_NAME, "renamed");
    named.tid = ::gettid();
    kept->add(empty_history_of(named));
  }).join();
  kept->add(empty_history_of(gone), "told before");
  ASSERT_TRUE(kept->finish());
  auto bundle = read_bundle(path);
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  EXPECT_EQ(bundle->about->threads.at(named).name, "renamed");
  EXPECT_EQ(bundle->about->threads.at(gone).name, "told before");
}

}  // namespace
}  // namespace tailtrace
