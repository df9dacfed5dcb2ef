#include "plugin/lldb/native.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "plugin/engines/perf/process_recording.h"
#include "plugin/provider/kept_recording.h"

namespace tailtrace::lldb_plugin {
namespace {

using perf::Hardware;

struct Native {
  const char* engine = "";
  perf::ProcessRecording recording;
};

// By LLDB's number of the process.
std::map<std::uint32_t, Native>& natives() {
  static std::map<std::uint32_t, Native> known;
  return known;
}

Result<Native> record(std::int32_t pid) {
  static constexpr std::pair<const char*, Hardware> kHardware[] = {
      {"pt", Hardware::kPt}, {"bts", Hardware::kBts}, {"lbr", Hardware::kLbr}};
  std::optional<Error> refused;
  for (auto [name, hardware] : kHardware) {
    auto started = perf::ProcessRecording::start(perf::real_kernel(), hardware, {}, pid, false);
    if (started) return Native{name, std::move(*started)};
    if (!refused) refused = std::move(started.error());  // why the best does not work
  }
  return fail(std::move(*refused));
}

}  // namespace

Result<void> start_native(Session& session) {
  lldb::SBProcess process = session.target().GetProcess();
  stop_native(session);
  auto native = record(static_cast<std::int32_t>(process.GetProcessID()));
  if (!native) return fail(std::move(native.error()));
  session.print(fmt::format("Recording with {}.\n", native->engine));
  for (const Error& remark : native->recording.take_remarks())
    session.print(fmt::format("note: {}\n", remark.to_line()));
  natives().emplace(process.GetUniqueID(), std::move(*native));
  return {};
}

bool has_native(Session& session) {
  return natives().contains(session.target().GetProcess().GetUniqueID());
}

void stop_native(Session& session) { natives().erase(session.target().GetProcess().GetUniqueID()); }

Result<std::string> save_native(Session& session, const std::string& path) {
  Native& native = natives().at(session.target().GetProcess().GetUniqueID());
  auto kept = KeptRecording::create(path);
  if (!kept) return fail(std::move(kept.error()));
  auto taken = native.recording.snapshot(perf::PerfConfig().records.ring_records);
  if (!taken) return fail(std::move(taken.error()));
  for (const ThreadSnapshot& snapshot : *taken)
    kept->add(snapshot, native.recording.name(snapshot.thread));
  if (taken->empty())
    return fail(ErrorCode::kNegative, "cannot save the history", "no thread has one yet");
  if (auto finished = kept->finish(); !finished) return fail(std::move(finished.error()));
  return kept->told() + "\n";
}

}  // namespace tailtrace::lldb_plugin
