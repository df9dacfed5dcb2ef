#include "plugin/cli/counting.h"

#include <fmt/format.h>
#include <unistd.h>

namespace tailtrace {
namespace {

constexpr std::chrono::milliseconds kPatience(300);

volatile sig_atomic_t g_interrupted = 0;

}  // namespace

Counting::Counting(std::FILE* err)
    : err_(err), terminal_(::isatty(::fileno(err)) == 1), begun_(std::chrono::steady_clock::now()) {
  g_interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  // The second Ctrl-C is an ordinary one.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, &before_);
}

Counting::~Counting() {
  ::sigaction(SIGINT, &before_, nullptr);
  if (shown_) fmt::print(err_, "\r\33[K");
}

SegmentStore::Watch Counting::watch() {
  return [this](const SegmentStore::Progress& progress) { return look(progress); };
}

bool Counting::look(const SegmentStore::Progress& progress) {
  if (terminal_ && std::chrono::steady_clock::now() - begun_ >= kPatience) {
    fmt::print(err_, "\r\33[K{}", progress_text(progress));
    std::fflush(err_);
    shown_ = true;
  }
  interrupted_ = g_interrupted != 0;
  return !interrupted_;
}

std::string progress_text(const SegmentStore::Progress& progress) {
  const std::uint64_t percent = progress.size == 0 ? 100 : progress.done * 100 / progress.size;
  const std::uint64_t insns = progress.found.items - progress.found.gaps;
  std::string count = std::to_string(insns);
  if (insns >= 1'000'000) count = fmt::format("{:.1f} M", static_cast<double>(insns) * 1e-6);
  return fmt::format("indexed {} % (newest {} instructions ready)", percent, count);
}

}  // namespace tailtrace
