#include "plugin/server/below/step_row.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace tailtrace {

void StepRow::Unmap::operator()(StepRowMemory* memory) const { ::munmap(memory, sizeof *memory); }

Result<StepRow> StepRow::make() {
  StepRow made;
  made.fd_ = UniqueFd(::memfd_create("step-row", MFD_CLOEXEC));
  if (!made.fd_ || ::ftruncate(made.fd_.get(), sizeof(StepRowMemory)) != 0)
    return fail(system_error("cannot make shared memory"));
  void* place =
      ::mmap(nullptr, sizeof(StepRowMemory), PROT_READ | PROT_WRITE, MAP_SHARED, made.fd_.get(), 0);
  if (place == MAP_FAILED) return fail(system_error("cannot map shared memory"));
  made.memory_.reset(static_cast<StepRowMemory*>(place));
  return made;
}

void StepRow::become_its(int first_free) const {
  ::setenv(kStepRowVariable, std::to_string(::fcntl(fd_.get(), F_DUPFD, first_free)).c_str(), 1);
}

void StepRow::ask(const Request& request) {
  static constexpr std::size_t kMost = StepRowMemory::kMost_ranges;
  std::span<const Range> code = request.code;
  if (code.size() > kMost) {
    auto next = std::ranges::upper_bound(code, request.pc, {}, &Range::begin);
    const auto before = static_cast<std::size_t>(next - code.begin());
    const std::size_t first = before - std::min(before, kMost / 2);
    code = code.subspan(std::min(first, code.size() - kMost), kMost);
  }
  std::ranges::transform(code, memory_->code, [](const Range& range) {
    return StepRowMemory::Range{range.begin.value, range.end.value};
  });
  memory_->ranges = static_cast<std::uint32_t>(code.size());
  memory_->within = {request.within.begin.value, request.within.end.value};
  memory_->ends_at_loops = request.ends_at_loops ? 1 : 0;
  memory_->most_steps = std::min(request.most_steps, StepRowMemory::kMost_steps);
  asked_ = request.thread;
  memory_->thread.store(request.thread.tid);
}

StepRow::Made StepRow::take() {
  memory_->thread.store(0);
  const std::uint32_t steps = memory_->steps.exchange(0);
  return {asked_, {memory_->pcs, std::min(steps, StepRowMemory::kMost_steps)}};
}

}  // namespace tailtrace
