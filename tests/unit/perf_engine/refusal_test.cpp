#include "plugin/engines/perf/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "plugin/engines/perf/event.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

// Opens an event that the kernel refuses.
Error refused_with(FakeKernel& kernel, int error_number, Purpose purpose = Purpose::kPt,
                   Target target = {42, -1}) {
  kernel.on_open = [=](const perf_event_attr&, Target) { return -error_number; };
  auto event = Event::open(kernel, purpose, plain_attr(8, 0), target);
  EXPECT_FALSE(event);
  return event.error();
}

TEST(Refusal, NamesTheParanoidLevel) {
  FakeKernel kernel;
  kernel.put_file("/proc/sys/kernel/perf_event_paranoid", "4\n");
  Error error = refused_with(kernel, EACCES);
  EXPECT_EQ(error.code, ErrorCode::kPermission);
  EXPECT_EQ(error.what, "cannot watch thread 42 with Intel PT: Permission denied");
  EXPECT_EQ(error.why, "kernel.perf_event_paranoid is 4");
  EXPECT_EQ(error.fix, "sudo sysctl kernel.perf_event_paranoid=2");
  EXPECT_THAT(error.now, HasSubstr("--engine=qemu"));
}

TEST(Refusal, TellsWhichRightAnEventNeeds) {
  FakeKernel kernel;
  EXPECT_THAT(refused_with(kernel, EACCES, Purpose::kBtsArea).why, HasSubstr("kernel addresses"));
  EXPECT_THAT(refused_with(kernel, EACCES, Purpose::kPt, {-1, 0}).why, HasSubstr("a whole CPU"));
  EXPECT_THAT(refused_with(kernel, EACCES).fix, HasSubstr("CAP_SYS_PTRACE"));
}

TEST(Refusal, NamesAMissingPmuInAVirtualMachine) {
  FakeKernel kernel;
  Error bare = refused_with(kernel, ENOENT, Purpose::kBtsSamples);
  EXPECT_EQ(bare.code, ErrorCode::kNoEngine);
  EXPECT_THAT(bare.why, HasSubstr("this processor (a fake) has no Intel BTS"));
  kernel.put_file("/sys/hypervisor/type", "KVM\n");
  EXPECT_THAT(refused_with(kernel, ENOENT).why, HasSubstr("virtual machine (KVM)"));
}

TEST(Refusal, NamesDockersSeccompFilter) {
  FakeKernel kernel;
  kernel.put_file("/.dockerenv", "");
  kernel.put_file("/proc/self/status", "Seccomp:\t2\nCapEff:\t0000000000000000\n");
  Error error = refused_with(kernel, EPERM);
  EXPECT_THAT(error.why, HasSubstr("seccomp filter of docker"));
  EXPECT_THAT(error.fix, HasSubstr("--cap-add=PERFMON"));
}

TEST(Refusal, NamesWhoHoldsEventsWhenTheHardwareIsBusy) {
  FakeKernel kernel;
  kernel.put_file("/proc/4711/comm", "perf\n");
  kernel.put_file("/proc/4711/fd/.keep", "");
  std::filesystem::create_symlink("anon_inode:[perf_event]", kernel.root() + "/proc/4711/fd/3");
  std::filesystem::create_symlink("anon_inode:[perf_event]", kernel.root() + "/proc/4711/fd/4");
  std::filesystem::create_symlink("/dev/null", kernel.root() + "/proc/4711/fd/5");
  Error busy = refused_with(kernel, EBUSY);
  EXPECT_THAT(busy.why, HasSubstr("4711 (perf) has 2 perf events open"));
  Error full = refused_with(kernel, ENOSPC, Purpose::kBreakpoint);
  EXPECT_THAT(full.why, HasSubstr("all four debug registers"));
  EXPECT_THAT(full.why, HasSubstr("4711 (perf)"));
}

TEST(Refusal, TracesEinvalToOneAttribute) {
  FakeKernel kernel;
  kernel.on_open = [](const perf_event_attr& attr, Target) { return attr.build_id ? -EINVAL : 0; };
  perf_event_attr attr = plain_attr(1, 9);
  attr.context_switch = attr.build_id = attr.inherit = 1;
  auto event = Event::open(kernel, Purpose::kSideband, attr, {42, -1});
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().why,
            "Linux 6.1.0 takes the event without build_id, and does not with it");
  kernel.on_open = [](const perf_event_attr& a, Target) {
    return aux_action(a) != AuxAction::kNone ? -EINVAL : 0;
  };
  set_aux_action(attr, AuxAction::kStartPaused);
  event = Event::open(kernel, Purpose::kPt, attr, {42, -1});
  ASSERT_FALSE(event);
  EXPECT_THAT(event.error().why, HasSubstr("AUX pause and resume"));
}

TEST(Refusal, CountsLockedMemory) {
  FakeKernel kernel;
  kernel.on_map = [](std::uint64_t offset, std::size_t, int) { return offset == 0 ? 0 : -EPERM; };
  auto event = Event::open(kernel, Purpose::kPt, plain_attr(8, 0), {42, -1});
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->map_ring(0, Event::WhenFull::kOverwrite));
  auto mapped = event->map_aux(1 << 20, Event::WhenFull::kOverwrite);
  ASSERT_FALSE(mapped);
  EXPECT_THAT(mapped.error().what, HasSubstr("cannot map 1024 KiB for Intel PT of thread 42"));
  EXPECT_THAT(mapped.error().why, HasSubstr("1024 KiB were asked for"));
  EXPECT_THAT(mapped.error().why, HasSubstr("pool for perf is 516 KiB"));
  EXPECT_THAT(mapped.error().fix, HasSubstr("ulimit -l 1048"));
}

TEST(Refusal, SaysSomethingOfEveryErrorThatIsDocumented) {
  FakeKernel kernel;
  for (int number : {ENOENT, EINVAL, E2BIG, EOPNOTSUPP, EACCES, EPERM, EBUSY, ENOSPC, ENOMEM,
                     EMFILE, ENODEV, ESRCH, ENOSYS, EINTR}) {
    for (Purpose purpose : {Purpose::kPt, Purpose::kBtsArea, Purpose::kBtsSamples, Purpose::kLbr,
                            Purpose::kBreakpoint, Purpose::kSideband}) {
      Error error = refused_with(kernel, number, purpose);
      EXPECT_FALSE(error.what.empty());
      EXPECT_FALSE(error.why.empty());
    }
  }
  EXPECT_EQ(refused_with(kernel, ESRCH).code, ErrorCode::kGone);
  EXPECT_EQ(refused_with(kernel, EOPNOTSUPP, Purpose::kBtsSamples).code, ErrorCode::kNoEngine);
  EXPECT_THAT(refused_with(kernel, ENOMEM, Purpose::kBtsArea).now, HasSubstr("branch samples"));
}

TEST(Event, HalvesTheBufferUntilTheKernelTakesIt) {
  FakeKernel kernel;
  std::vector<std::size_t> asked;
  kernel.on_map = [&](std::uint64_t offset, std::size_t size, int) {
    if (offset != 0) asked.push_back(size);
    return offset != 0 && size > 65536 ? -ENOMEM : 0;
  };
  auto event = Event::open(kernel, Purpose::kPt, plain_attr(8, 0), {42, -1});
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->map_ring(0, Event::WhenFull::kOverwrite));
  auto got = event->map_aux(1 << 18, Event::WhenFull::kOverwrite);
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, 65536u);
  EXPECT_EQ(asked, (std::vector<std::size_t>{1 << 18, 1 << 17, 1 << 16}));
  ASSERT_TRUE(event->shortened());
  EXPECT_THAT(event->shortened()->what, HasSubstr("256 KiB"));
  EXPECT_EQ(event->shortened()->now, "64 KiB are used");
}

TEST(Event, HalvesARingAsWell) {
  FakeKernel kernel;
  kernel.on_map = [](std::uint64_t, std::size_t size, int) {
    return size > (64 << 10) + page_size() ? -EPERM : 0;
  };
  auto event = Event::open(kernel, Purpose::kBtsSamples, plain_attr(0, 0), {42, -1});
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->map_largest_ring(256 << 10, Event::WhenFull::kOverwrite));
  EXPECT_EQ(event->ring().size(), 64u << 10);
  ASSERT_TRUE(event->shortened());
  EXPECT_THAT(event->shortened()->what, HasSubstr("256 KiB"));
  EXPECT_EQ(event->shortened()->now, "64 KiB are used");

  kernel.on_map = [](std::uint64_t, std::size_t, int) { return -EPERM; };
  auto none = Event::open(kernel, Purpose::kBtsSamples, plain_attr(0, 0), {42, -1});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->map_largest_ring(256 << 10, Event::WhenFull::kOverwrite).error().code,
            ErrorCode::kPermission);
}

TEST(Event, ReadsHeadsAndTheClockOfItsControlPage) {
  FakeKernel kernel;
  auto event = Event::open(kernel, Purpose::kPt, plain_attr(8, 0), {42, -1});
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->map_ring(4096, Event::WhenFull::kStop));
  kernel.set_page(event->fd(), kPageDataHead, 4711);
  kernel.set_page(event->fd(), kPageAuxHead, 99);
  EXPECT_EQ(event->data_head(), 4711u);
  EXPECT_EQ(event->aux_head(), 99u);
  EXPECT_FALSE(event->time_conversion());
  kernel.set_page(event->fd(), kPageCapabilities, kCapUserTimeZero);
  kernel.set_page(event->fd(), kPageTimeZero, 5);
  kernel.set_page(event->fd(), kPageTimeShift - 2, std::uint64_t{2} << 32 | 1 << 16);
  ASSERT_TRUE(event->time_conversion());
  EXPECT_EQ(*event->time_conversion(), (TimeConversion{5, 2, 1}));
}

}  // namespace
}  // namespace tailtrace::perf
