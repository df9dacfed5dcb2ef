#include "plugin/server/lldb/lldb_requests.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

// What stock LLDB sends for `thread trace start -s 1MiB -t -p 3` and `process trace start -s 64KB
// -l 10MB`.
constexpr std::string_view kThreadRequest =
    R"({"disableCgroupTracing":null,"enableTsc":true,"iptTraceSize":1048576,"perCpuTracing":null,)"
    R"("processBufferSizeLimit":null,"psbPeriod":3,"tids":[14479],"type":"intel-pt"})";
constexpr std::string_view kProcess =
    R"({"disableCgroupTracing":false,"enableTsc":false,"iptTraceSize":65536,"perCpuTracing":true,)"
    R"("processBufferSizeLimit":10485760,"psbPeriod":null,"tids":null,"type":"intel-pt"})";

TEST(LldbRequests, UnderstandsAThreadsStart) {
  auto start = parse_lldb_trace_start(kThreadRequest);
  ASSERT_TRUE(start) << start.error().to_string();
  EXPECT_EQ(start->threads, LldbThreads(std::vector<std::int32_t>{14479}));
  EXPECT_EQ(start->trace_size_bytes, 1u << 20);
  EXPECT_TRUE(start->times);
  EXPECT_EQ(start->psb_period, 3u);
  EXPECT_EQ(start->process_limit_bytes, std::nullopt);
  EXPECT_FALSE(start->per_cpu);
}

TEST(LldbRequests, UnderstandsAProcessStart) {
  auto start = parse_lldb_trace_start(kProcess);
  ASSERT_TRUE(start) << start.error().to_string();
  EXPECT_EQ(start->threads, std::nullopt);
  EXPECT_EQ(start->process_limit_bytes, 10485760u);
  EXPECT_EQ(start->psb_period, std::nullopt);
  EXPECT_TRUE(start->per_cpu);
}

// LLDB's own tests look for these words.
TEST(LldbRequests, RefusesSizesInTheWordsOfLldbsServer) {
  for (auto [size, told] :
       {std::pair("4095", "It was 4095."), {"0", "It was 0."}, {"12288", "It was 12288."}}) {
    auto start =
        parse_lldb_trace_start(std::string(R"({"type":"intel-pt","iptTraceSize":)") + size + "}");
    ASSERT_FALSE(start);
    EXPECT_EQ(start.error().to_line(),
              std::string("The intel pt trace size must be a power of 2 greater than or equal to "
                          "4096 (2^12) bytes. ") +
                  told);
  }
  auto start = parse_lldb_trace_start(R"({"type":"intel-pt","iptTraceSize":4096,"psbPeriod":16})");
  ASSERT_FALSE(start);
  EXPECT_TRUE(start.error().to_line().starts_with("Invalid psb_period. Valid values are: 0, 1, "));
}

TEST(LldbRequests, RefusesWhatIsNoRequest) {
  for (std::string_view text :
       {"", "{", "[]", "7", "{}", R"({"type":7})", R"({"type":"arm-etm","iptTraceSize":4096})",
        R"({"type":"intel-pt"})", R"({"type":"intel-pt","iptTraceSize":-1})",
        R"({"type":"intel-pt","iptTraceSize":4096,"tids":7})",
        R"({"type":"intel-pt","iptTraceSize":4096,"tids":[-7]})",
        R"({"type":"intel-pt","iptTraceSize":4096,"tids":[99999999999]})",
        R"({"type":"intel-pt","iptTraceSize":4096,"enableTsc":1})"})
    EXPECT_FALSE(parse_lldb_trace_start(text)) << text;
  EXPECT_FALSE(parse_lldb_trace_stop(R"({"type":"intel-pt","tids":["7"]})"));
  EXPECT_FALSE(parse_lldb_trace_state("{}"));
  EXPECT_FALSE(parse_lldb_trace_data(R"({"type":"intel-pt"})"));
  EXPECT_FALSE(parse_lldb_trace_data(R"({"type":"intel-pt","kind":"iptTrace","tid":0})"));
}

TEST(LldbRequests, UnderstandsWhatDataIsWanted) {
  auto data =
      parse_lldb_trace_data(R"({"cpuId":null,"kind":"iptTrace","tid":7,"type":"intel-pt"})");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->kind, "iptTrace");
  EXPECT_EQ(data->thread, 7);
  EXPECT_EQ(data->cpu, std::nullopt);
}

}  // namespace
}  // namespace tailtrace
