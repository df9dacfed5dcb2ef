#include "plugin/engines/perf/flow_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/file.h"

namespace tailtrace::perf {

// Code that changed did so after the thread stood where it stood last: nearer is not known.
void FlowRecorder::use(const CodeInUse& code) {
  if (image_ == code.image) return;
  auto reader = std::make_unique<CodeReader>(*code.image);
  reader->set_epoch(code.epoch());
  if (!flow_) {
    flow_.emplace(*reader);
    if (start_) flow_->begin_at(*start_);
    epochs_ = {{{0}, code.epoch()}};
  } else {
    std::uint32_t began = code.epoch().value - reader_->epoch().value;
    flow_->set_code(*reader, stop_, began);
    if (began != 0) epochs_.push_back({end(), code.epoch()});
  }
  reader_ = std::move(reader);
  image_ = code.image;
}

Result<void> FlowRecorder::refresh(const CodeInUse& code) {
  use(code);
  Quiet quiet(event_);
  if (auto ok = take(*flow_); !ok) return ok;
  flow_->keep(keep_);
  return {};
}

void FlowRecorder::fill(const Engine::Stop& stop, ThreadSnapshot& snapshot) {
  flow_->stands_at(stop.pc);
  snapshot.records = flow_->records();
  std::vector<BranchRecord> closing = flow_->closing(stop.pc, is_up_to_date());
  snapshot.records.insert(snapshot.records.end(), closing.begin(), closing.end());
  snapshot.first = {flow_->first()};
  snapshot.complete = flow_->complete() && start_;
  for (const auto& [from, epoch] : epochs_)
    if (from <= snapshot.first) snapshot.first_epoch = epoch;
  stop_ = stop.pc;
}

std::optional<Address> pc_of(const std::string& root, ThreadId thread) {
  auto bytes =
      read_file(fmt::format("{}/proc/{}/task/{}/syscall", root, thread.pid, thread.tid), 4096);
  if (!bytes) return std::nullopt;
  // "running", or numbers of which the last two are the stack pointer and the pc.
  std::string_view text = as_text(*bytes);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t space = text.rfind(' ');
  if (space == std::string_view::npos || !text.substr(space + 1).starts_with("0x"))
    return std::nullopt;
  auto pc = parse_hex(text.substr(space + 3));
  if (!pc || *pc == 0) return std::nullopt;
  return Address{*pc};
}

}  // namespace tailtrace::perf
