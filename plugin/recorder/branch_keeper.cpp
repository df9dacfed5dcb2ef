#include "plugin/recorder/branch_keeper.h"

#include <sys/uio.h>

#include <algorithm>

#include "decoder/base/types.h"
#include "plugin/engines/step/step_engine.h"
#include "plugin/provider/trace_provider.h"
#include "plugin/server/below/private_folder.h"

namespace tailtrace {
namespace {

// Of a thread, 32 bytes each: hardware buffers hold many more branches than anybody looks at.
constexpr std::uint64_t kMostRecords = 1ull << 22;

class HardwareKeeper final : public BranchKeeper {
 public:
  HardwareKeeper(perf::Hardware hardware, const perf::PerfConfig& config)
      : provider_(perf::real_kernel(), hardware, config) {}

  Result<void> begins(ThreadId thread) override { return provider_.start(thread); }
  void ends(ThreadId thread) override { (void)provider_.stop(thread).has_value(); }
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Engine::Stop& stop) override {
    return provider_.snapshot(thread, stop.pc, kMostRecords);
  }
  std::vector<Error> take_remarks() override { return provider_.take_remarks(); }

 private:
  TraceProvider provider_;
};

class StepKeeper final : public BranchKeeper {
 public:
  StepKeeper(OwnFolder folder, std::uint64_t ring_records)
      : folder_(std::move(folder)),
        engine_(folder_.path(), {ring_records},
                [](ThreadId thread, Address address, std::span<std::uint8_t> out) {
                  return read_process_memory(thread.pid, address, out);
                }) {}

  Result<void> begins(ThreadId thread) override { return engine_.start(thread); }
  void ends(ThreadId thread) override { engine_.thread_gone(thread); }
  void replaced(ThreadId thread, Address entry) override { engine_.replaced(thread, entry); }
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Engine::Stop& stop) override {
    return engine_.snapshot(thread, stop, ~0ull);
  }
  bool needs_steps() const override { return true; }
  void stepped(ThreadId thread, Address before, Address after, int signal) override {
    engine_.stepped(thread, before, after, signal);
  }
  std::optional<Instruction> instruction_at(ThreadId thread, Address address) override {
    return engine_.instruction_at(thread, address);
  }

 private:
  OwnFolder folder_;
  StepEngine engine_;
};

}  // namespace

std::unique_ptr<BranchKeeper> keep_by_hardware(perf::Hardware hardware,
                                               std::uint64_t buffer_bytes) {
  perf::PerfConfig config;
  config.buffer_bytes = std::max(buffer_bytes, kPage_bytes);
  config.records.ring_records = kMostRecords;
  return std::make_unique<HardwareKeeper>(hardware, config);
}

Result<std::unique_ptr<BranchKeeper>> keep_by_steps(std::uint64_t ring_records) {
  auto folder = make_private_folder();
  if (!folder) return fail(std::move(folder.error()));
  return std::make_unique<StepKeeper>(std::move(*folder), ring_records);
}

std::size_t read_process_memory(std::int32_t pid, Address address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    // A page at a time: a range that ends in nothing is read as far as it goes.
    const std::uint64_t at = address.value + done;
    std::size_t size = std::min<std::uint64_t>(out.size() - done, kPage_bytes - at % kPage_bytes);
    iovec ours{out.data() + done, size}, theirs{reinterpret_cast<void*>(at), size};
    ssize_t n = ::process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace tailtrace
