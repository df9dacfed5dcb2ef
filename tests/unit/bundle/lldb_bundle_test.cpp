// The description of a trace bundle of LLDB's: what is read, and what is refused where.
#include "decoder/bundle/lldb_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json by_thread() {
  return json::parse(R"({
    "type": "intel-pt",
    "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
    "processes": [{"pid": 7, "triple": "x86_64-*-linux",
      "threads": [{"tid": 8, "iptTrace": "8.trace"}, {"tid": 9, "iptTrace": null}],
      "modules": [{"file": "a.out", "systemPath": "/bin/a.out", "loadAddress": "0x7fff00001000",
                   "uuid": "0123-AB"},
                  {"file": null, "systemPath": "/lib/b.so", "loadAddress": "65536"}]}]})");
}

json by_cpu() {
  json bundle = by_thread();
  bundle["cpus"] = json::parse(
      R"([{"id": 45, "iptTrace": "cpus/45.trace", "contextSwitchTrace": "cpus/45.switches"}])");
  bundle["tscPerfZeroConversion"] =
      json::parse(R"({"timeMult": 3, "timeShift": 31, "timeZero": "18433473881008870804"})");
  bundle["kernel"] = nullptr;
  return bundle;
}

json of_kernel() {
  json bundle = by_cpu();
  bundle.erase("processes");
  bundle["kernel"] = {{"file", "vmlinux"}};
  return bundle;
}

Result<LldbBundle> parse(const json& bundle) { return parse_lldb_bundle(bundle.dump(), "/folder"); }

std::string why(const json& bundle) {
  auto parsed = parse(bundle);
  return parsed ? "it was read" : parsed.error().why;
}

TEST(LldbBundle, ByThreadHasItsTracesAndModules) {
  auto bundle = parse(by_thread());
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  const LldbProcess& process = bundle->processes.at(0);
  EXPECT_EQ(process.threads.at(0).trace_path, "/folder/8.trace");
  EXPECT_EQ(process.threads.at(0).thread, (ThreadId{7, 8}));
  EXPECT_EQ(process.threads.at(1).trace_path, "");
  EXPECT_EQ(process.modules.at(0).path, "/folder/a.out");
  EXPECT_EQ(process.modules.at(0).load_address.value, 0x7fff00001000u);
  EXPECT_EQ(process.modules.at(0).uuid, "0123-AB");
  EXPECT_EQ(process.modules.at(1).path, "/lib/b.so");
  EXPECT_EQ(process.modules.at(1).load_address.value, 65536u);
  EXPECT_FALSE(bundle->clock || bundle->kernel);
}

TEST(LldbBundle, ByProcessorHasTheClockOfItsSwitches) {
  auto bundle = parse(by_cpu());
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  EXPECT_EQ(bundle->cpus.at(0).id, 45u);
  EXPECT_EQ(bundle->cpus.at(0).trace_path, "/folder/cpus/45.trace");
  EXPECT_EQ(bundle->cpus.at(0).context_switch_path, "/folder/cpus/45.switches");
  EXPECT_EQ(bundle->clock, (perf::TimeConversion{18433473881008870804u, 3, 31}));
}

TEST(LldbBundle, AKernelIsWhereLinuxPutsItUnlessItIsSaid) {
  json bundle = of_kernel();
  auto parsed = parse(bundle);
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->kernel->path, "/folder/vmlinux");
  EXPECT_EQ(parsed->kernel->load_address.value, 0xffffffff81000000u);
  bundle["kernel"]["loadAddress"] = "0xffffffff9a000000";
  EXPECT_EQ(parse(bundle)->kernel->load_address.value, 0xffffffff9a000000u);
  bundle["processes"] = json::array();
  EXPECT_TRUE(parse(bundle));
}

TEST(LldbBundle, WhatIsMissingIsSaid) {
  for (const char* pointer :
       {"/type", "/cpuInfo", "/cpuInfo/vendor", "/cpuInfo/family", "/cpuInfo/stepping",
        "/processes", "/processes/0/pid", "/processes/0/threads", "/processes/0/modules",
        "/processes/0/threads/0/tid", "/processes/0/modules/0/systemPath",
        "/processes/0/modules/0/loadAddress", "/cpus/0/id", "/cpus/0/iptTrace",
        "/cpus/0/contextSwitchTrace", "/tscPerfZeroConversion", "/tscPerfZeroConversion/timeMult",
        "/tscPerfZeroConversion/timeShift", "/tscPerfZeroConversion/timeZero"}) {
    json bundle = by_cpu();
    json::json_pointer at(pointer);
    bundle[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(why(bundle), HasSubstr(at.back() + " is missing")) << pointer;
  }
  json no_file = of_kernel();
  no_file["kernel"].erase("file");
  EXPECT_THAT(why(no_file), HasSubstr("kernel.file is missing"));
  json no_cpus = of_kernel();
  no_cpus["cpus"] = nullptr;
  EXPECT_THAT(why(no_cpus), HasSubstr("cpus is missing"));
}

TEST(LldbBundle, WhatIsOfAnotherKindIsSaid) {
  for (auto [pointer, value] : {std::pair{"/type", json("intel-bts")},
                                {"/cpuInfo/family", json("6")},
                                {"/cpuInfo/model", json(1000)},
                                {"/processes", json(3)},
                                {"/processes/0", json(123)},
                                {"/processes/0/pid", json(-1)},
                                {"/processes/0/threads", json("8")},
                                {"/processes/0/threads/0/tid", json(1.5)},
                                {"/processes/0/threads/0/iptTrace", json(1)},
                                {"/processes/0/modules/0/loadAddress", json("0xnowhere")},
                                {"/processes/0/modules/0/uuid", json(1)},
                                {"/cpus/0/id", json("45")},
                                {"/tscPerfZeroConversion/timeMult", json(0)},
                                {"/tscPerfZeroConversion/timeShift", json(64)},
                                {"/kernel", json("vmlinux")}}) {
    json bundle = by_cpu();
    bundle[json::json_pointer(pointer)] = value;
    EXPECT_NE(why(bundle), "it was read") << pointer;
  }
  json both = of_kernel();
  both["processes"] = by_thread()["processes"];
  EXPECT_THAT(why(both), HasSubstr("processes is not empty"));
  json twice = by_thread();
  twice["processes"].push_back(twice["processes"][0]);
  EXPECT_THAT(why(twice), HasSubstr("processes[1].pid is that of another process"));
  EXPECT_FALSE(parse_lldb_bundle("[", ""));
  EXPECT_FALSE(parse_lldb_bundle("[]", ""));
}

TEST(LldbBundle, NamesFilesOfItsFolderOnly) {
  for (const char* pointer : {"/processes/0/threads/0/iptTrace", "/processes/0/modules/0/file",
                              "/cpus/0/iptTrace", "/cpus/0/contextSwitchTrace"})
    for (const char* name : {"/etc/passwd", "../trace", "cpus/../../trace"}) {
      json bundle = by_cpu();
      bundle[json::json_pointer(pointer)] = name;
      EXPECT_THAT(why(bundle), HasSubstr("leads out of the bundle's folder")) << pointer;
    }
  json kernel = of_kernel();
  kernel["kernel"]["file"] = "/boot/vmlinux";
  EXPECT_THAT(why(kernel), HasSubstr("kernel.file leads out"));
}

TEST(LldbBundle, FollowsNoLinks) {
  TempFolder folder;
  std::filesystem::create_symlink("/etc", folder.file("cpus"));
  auto parsed = parse_lldb_bundle(by_cpu().dump(), folder.path());
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().why, HasSubstr("cpus[0].iptTrace is a symbolic link"));
}

}  // namespace
}  // namespace tailtrace
