// The kernel's code, out of files as /proc has them.
#include "plugin/engines/perf/kernel_code.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugin/engines/perf/perf_engine.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kText = 0xffffffff81000000, kModules = 0xffffffffc0000000;
constexpr std::uint64_t kTextOffset = 0x1000, kModulesOffset = 0x3000;

// A core file with two stretches of memory, each filled with numbers of its own.
std::string kcore() {
  std::string file(0x5000, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  std::memcpy(file.data(), &header, sizeof header);
  Elf64_Phdr segments[3] = {};
  segments[0].p_type = PT_NOTE;
  segments[1] = {PT_LOAD, 7, kTextOffset, kText, 0, 0x2000, 0x2000, 4096};
  segments[2] = {PT_LOAD, 7, kModulesOffset, kModules, 0, 0x2000, 0x2000, 4096};
  std::memcpy(file.data() + sizeof header, segments, sizeof segments);
  for (std::size_t i = kTextOffset; i < file.size(); ++i)
    file[i] = static_cast<char>(i < kModulesOffset ? i % 251 : i % 241);
  return file;
}

class KernelCode : public testing::Test {
 protected:
  KernelCode() {
    kernel_.put_file("/proc/kcore", kcore());
    kernel_.put_file("/proc/kallsyms",
                     "ffffffff81000100 T _stext\nffffffff81000200 t something\n"
                     "ffffffff81001100 T _etext\nffffffffc0000010 t in_it\t[first]\n");
    kernel_.put_file("/proc/modules",
                     "first 4096 0 - Live 0xffffffffc0000000 (OE)\n"
                     "second 8192 1 first, Live 0xffffffffc0001000\n"
                     "hidden 4096 0 - Live 0x0000000000000000\n");
  }
  Error refused() {
    auto read = read_kernel_code(kernel_.root());
    EXPECT_FALSE(read);
    EXPECT_EQ(read.error().what, "cannot record kernel code");
    EXPECT_THAT(read.error().now, HasSubstr("user code"));
    return read.error();
  }
  void put_pt() {
    kernel_.put_pmu("intel_pt", 8);
    for (auto [name, field] : {std::pair{"pt", "config:0"},
                               {"branch", "config:13"},
                               {"tsc", "config:10"},
                               {"psb_period", "config:24-27"}})
      kernel_.put_file(std::string("/sys/bus/event_source/devices/intel_pt/format/") + name,
                       std::string(field) + "\n");
    kernel_.put_file("/sys/bus/event_source/devices/intel_pt/caps/psb_periods", "3f\n");
  }
  FakeKernel kernel_;
};

TEST_F(KernelCode, IsThatOfTheKernelAndOfTheModulesThatAreShown) {
  auto read = read_kernel_code(kernel_.root());
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].name, "kernel");
  EXPECT_EQ((*read)[0].address.value, kText + 0x100);
  EXPECT_EQ((*read)[0].code.size(), 0x1000u);
  EXPECT_EQ((*read)[1].name, "first");
  EXPECT_EQ((*read)[2].name, "second");
  EXPECT_EQ((*read)[2].code.size(), 0x1000u) << "what the core has of it";
  auto image = image_of(std::move(*read));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->at({kText + 0x123}, 1)[0], (kTextOffset + 0x123) % 251);
  EXPECT_EQ(image->at({kModules + 0x1001}, 1)[0], (kModulesOffset + 0x1001) % 241);
  EXPECT_TRUE(image->at({kText + 0xff}, 1).empty());
}

TEST_F(KernelCode, IsRefusedByNameWhereItCannotBeRead) {
  kernel_.put_file("/proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
  EXPECT_EQ(refused().code, ErrorCode::kPermission);
  EXPECT_THAT(refused().why, HasSubstr("kernel.kptr_restrict"));
  kernel_.put_file("/proc/kallsyms", "ffffffff81001100 T _stext\nffffffff81000100 T _etext\n");
  EXPECT_THAT(refused().why, HasSubstr("far from _stext"));
  kernel_.put_file("/proc/kcore", "no core");
  EXPECT_THAT(refused().why, HasSubstr("no ELF file"));
  kernel_.put_file("/proc/kcore", kcore().substr(0, 80));
  EXPECT_THAT(refused().why, HasSubstr("cut short"));
  FakeKernel without;
  auto read = read_kernel_code(without.root());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().why, HasSubstr("/proc/kcore: No such file"));
}

TEST_F(KernelCode, ComesWithEventsThatDoNotLeaveTheKernelOut) {
  put_pt();
  PerfConfig config;
  config.kernel = true;
  PerfEngine engine(kernel_, Hardware::kPt, config);
  const ThreadId self{::getpid(), ::getpid()};
  ASSERT_TRUE(engine.start(self));
  EXPECT_EQ(kernel_.opened().front().attr.exclude_kernel, 0u);
  auto snapshot = engine.snapshot(self, {{0x1234}, false}, 10);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  EXPECT_FALSE(snapshot->code->at({kText + 0x100}, 1).empty());
  EXPECT_FALSE(snapshot->code->at({reinterpret_cast<std::uint64_t>(&kcore)}, 1).empty());
  kernel_.put_file("/proc/kcore", "no core");
  PerfEngine second(kernel_, Hardware::kPt, config);
  EXPECT_EQ(second.start(self).error().code, ErrorCode::kBadInput);
  EXPECT_FALSE(second.is_recording(self));
  PerfEngine bts(kernel_, Hardware::kBts, config);
  EXPECT_EQ(bts.start(self).error().why, "only Intel PT shows it");
}

TEST_F(KernelCode, ThatOneMayNotRecordIsToldWithTheLevel) {
  put_pt();
  kernel_.put_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
  kernel_.put_file("/proc/self/status", "CapEff:\t0000000000000000\n");
  kernel_.on_open = [](const perf_event_attr& attr, Target) {
    return attr.exclude_kernel == 0 ? -EACCES : 0;
  };
  PerfConfig config;
  config.kernel = true;
  PerfEngine engine(kernel_, Hardware::kPt, config);
  auto started = engine.start({::getpid(), ::getpid()});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kPermission);
  EXPECT_THAT(started.error().why, HasSubstr("kernel code was asked for, and "
                                             "kernel.perf_event_paranoid is 2"));
  EXPECT_THAT(started.error().now, HasSubstr("user code can be traced without"));
}

}  // namespace
}  // namespace tailtrace::perf
