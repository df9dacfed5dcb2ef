#include "plugin/cli/history_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "decoder/bundle/bundle_format.h"
#include "decoder/perf_data/recording.h"
#include "decoder/record/stream_format.h"
#include "plugin/engines/qemu/kept_maps.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/session_folder.h"
#include "plugin/recorder/triggers.h"

namespace tailtrace {

struct OpenFolder {
  std::mutex mutex;  // guards the engine: threads may be opened at once
  std::unique_ptr<QemuEngine> engine;
  RecordingLosses losses;  // when it was opened: in a process that goes on they grow
  std::optional<KeptMaps> maps;

  // What was mapped when it ended, or is now.
  const KeptMaps& known_maps() {
    if (!maps || engine->folder().is_alive()) maps = kept_maps(engine->folder());
    return *maps;
  }
};

namespace {

std::string state_text(const QemuEngine::Thread& thread, bool is_alive) {
  switch (thread.state) {
    case RingState::kEmpty:
      return "not started";
    case RingState::kRunning:
      if (is_alive) return "running";
      return thread.ended_by == 0 ? "killed" : "killed by " + signal_text(thread.ended_by);
    case RingState::kThreadExited:
    case RingState::kProcessExited:
      return "exited";
    case RingState::kReplaced:
      return "replaced";
    case RingState::kFollowed:
      return "gone on in another folder";
  }
  return "unknown";
}

bool is_process_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/" + kProcessName, ignored);
}

Result<void> add_process(const std::string& folder, std::vector<ThreadSource>& threads) {
  Result<std::unique_ptr<QemuEngine>> opened = QemuEngine::open(folder);
  if (!opened) return fail(std::move(opened.error()));
  auto open = std::make_shared<OpenFolder>();
  open->engine = std::move(*opened);
  open->losses = open->engine->folder().losses();
  Result<std::vector<QemuEngine::Thread>> found = open->engine->threads();
  if (!found) return fail(std::move(found.error()));
  bool alive = open->engine->folder().is_alive();
  for (const QemuEngine::Thread& thread : *found) {
    threads.push_back({folder, state_text(thread, alive), thread.thread, false, {}, {}, {}, open});
    if (!alive && thread.ended_by != 0) threads.back().cause = signal_text(thread.ended_by);
  }
  return {};
}

Result<std::vector<ThreadSource>> threads_of_perf_data(const std::string& path) {
  auto recording = perf::PerfRecording::open(path);
  if (!recording) return fail(std::move(recording.error()));
  std::vector<ThreadSource> threads;
  for (const perf::PerfRecording::Thread& thread : (*recording)->threads())
    threads.push_back({path, "saved", thread.thread, false, {}, *recording});
  return threads;
}

Result<std::vector<ThreadSource>> threads_of_stream(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  ByteSpan head = file->bytes().first(std::min<std::size_t>(64, file->bytes().size()));
  if (as_text(head).starts_with(std::string_view(kRingMagic, sizeof kRingMagic)))
    return fail(ErrorCode::kUsage, "cannot show the ring " + path + " by itself",
                "the code that was executed is kept beside it",
                "name its folder: " + std::filesystem::path(path).parent_path().string());
  if (perf::is_perf_data(head)) return threads_of_perf_data(path);
  if (!as_text(head).starts_with(std::string_view(kStreamMagic, sizeof kStreamMagic)))
    return fail(ErrorCode::kBadInput, "there is no recording in " + path,
                "it is no record stream and no perf.data file",
                "name a recording's folder; tailtrace decode takes raw Intel PT");
  // Only the header is looked at here: nothing of the rest is unpacked.
  Result<RecordStream> stream = parse_record_stream(head, path, 0);
  if (!stream) return fail(std::move(stream.error()));
  return std::vector<ThreadSource>{{path, "", stream->header.thread, true, {}, {}}};
}

Result<std::vector<ThreadSource>> threads_of_bundle(const std::string& path) {
  Result<Bundle> bundle = read_bundle(path);
  if (!bundle) return fail(std::move(bundle.error()));
  std::vector<ThreadSource> threads;
  for (const BundleThread& thread : bundle->threads) {
    auto in_bundle = std::make_shared<const BundleThread>(thread);
    threads.push_back({path, "saved", thread.thread, false, {}, {}, std::move(in_bundle)});
    if (thread.thread == bundle->about->thread) threads.back().cause = bundle->about->cause;
  }
  return threads;
}

// Threads of one number are one that executed several programs.
void count_programs(std::vector<ThreadSource>& threads) {
  std::map<ThreadId, std::size_t> programs;
  for (ThreadSource& thread : threads) thread.program = ++programs[thread.thread];
  for (ThreadSource& thread : threads) thread.has_more_programs = programs[thread.thread] > 1;
}

bool is_meant_by(const std::string& wanted, const ThreadSource& thread) {
  const std::string tid = std::to_string(thread.thread.tid);
  const std::string whole = fmt::format("{}.{}", thread.thread.pid, tid);
  const std::string number = fmt::format("#{}", thread.program);
  return wanted == tid || wanted == whole || wanted == tid + number || wanted == whole + number;
}

// The description of an LLDB bundle: it stands in the bundle's folder, or is named itself.
std::string lldb_description(const std::string& path) {
  std::error_code ignored;
  bool is_named = std::filesystem::path(path).extension() == ".json" &&
                  std::filesystem::is_regular_file(path, ignored);
  return is_named ? path : path + "/" + kLldbBundleName;
}

bool is_lldb_bundle(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(lldb_description(path), ignored);
}

Result<std::vector<ThreadSource>> threads_of_lldb_bundle(const std::string& path) {
  auto recording = LldbRecording::open(lldb_description(path));
  if (!recording) return fail(std::move(recording.error()));
  std::vector<ThreadSource> threads;
  for (ThreadId thread : (*recording)->threads())
    threads.push_back({path, "saved", thread, false, *recording, {}});
  if (threads.empty())
    return fail(ErrorCode::kBadInput, "there is no recording in " + path,
                "the bundle has no thread");
  return threads;
}

// What a process's recording lacks.
std::vector<Error> losses_of(const ProcessFolder& folder, const RecordingLosses& losses) {
  std::vector<Error> found = folder.damaged();
  if (losses.threads != 0)
    found.push_back(
        {ErrorCode::kGaps,
         fmt::format("{} threads of process {} are missing", losses.threads, folder.pid()),
         "they found no space for a ring", "record with smaller rings", ""});
  if (losses.rings != 0)
    found.push_back(
        {ErrorCode::kGaps,
         fmt::format("{} ended threads of process {} are missing", losses.rings, folder.pid()),
         "only the newest ended threads keep their rings", "", ""});
  return found;
}

Result<OpenedThread> open_in_folder(const ThreadSource& thread, std::uint64_t limit_records) {
  const std::lock_guard lock(thread.qemu->mutex);
  QemuEngine& engine = *thread.qemu->engine;
  const ProcessFolder& folder = engine.folder();
  Result<OpenedThread> opened = engine.open_thread(thread.thread, limit_records);
  if (!opened) return opened;
  const KeptMaps& maps = thread.qemu->known_maps();
  opened->frame.former_maps = maps_with_other_builds(opened->frame.former_maps, maps.modules);
  opened->maps = maps.text;
  opened->perf_map = folder.perf_map();
  opened->problems = losses_of(folder, thread.qemu->losses);
  opened->problems.insert(opened->problems.end(), maps.problems.begin(), maps.problems.end());
  return opened;
}

}  // namespace

std::string thread_text(const ThreadSource& thread) {
  std::string text = fmt::format("{}.{}", thread.thread.pid, thread.thread.tid);
  if (thread.has_more_programs) text += fmt::format("#{}", thread.program);
  return text;
}

nlohmann::ordered_json thread_json(const ThreadSource& thread) {
  nlohmann::ordered_json json = {{"pid", thread.thread.pid}, {"tid", thread.thread.tid}};
  if (thread.has_more_programs) json["program"] = thread.program;
  return json;
}

namespace {

Result<std::vector<ThreadSource>> threads_at(const std::string& named) {
  std::error_code error;
  std::filesystem::path whole(named);
  std::string path = whole.filename() == kLldbBundleName || whole.filename() == kBundleName
                         ? whole.parent_path().string()
                         : named;
  if (path.empty()) path = ".";
  if (!std::filesystem::exists(path, error) && !error) return fail(missing_recording(path));
  bool is_folder = std::filesystem::is_directory(path, error);
  if (is_folder && is_bundle(path)) return threads_of_bundle(path);
  if (is_lldb_bundle(path)) return threads_of_lldb_bundle(path);
  if (!is_folder) return threads_of_stream(path);
  std::vector<std::string> folders = {path};
  if (!is_process_folder(path)) {
    Result<std::vector<std::string>> found = process_folders(path);
    if (!found) return fail(std::move(found.error()));
    folders = std::move(*found);
  }
  std::vector<ThreadSource> threads;
  for (const std::string& folder : folders)
    if (Result<void> added = add_process(folder, threads); !added)
      return fail(std::move(added.error()));
  if (threads.empty())
    return fail(ErrorCode::kBadInput, "there is no recording in " + path,
                "it holds no thread that was recorded",
                "name the folder that --keep or save wrote");
  return threads;
}

}  // namespace

Result<std::vector<ThreadSource>> recorded_threads(const std::string& path) {
  auto threads = threads_at(path);
  if (threads) count_programs(*threads);
  return threads;
}

Result<ThreadSource> pick_thread(const std::vector<ThreadSource>& threads,
                                 const std::string& wanted) {
  const ThreadSource* picked = nullptr;
  std::string known;
  for (const ThreadSource& thread : threads) {
    bool is_first = wanted.empty() && picked == nullptr;
    bool is_same = wanted.empty() && picked != nullptr && picked->thread == thread.thread;
    if (is_first || is_same || is_meant_by(wanted, thread)) picked = &thread;
    if (known.size() < 200) known += (known.empty() ? "" : ", ") + thread_text(thread);
  }
  if (picked != nullptr) return *picked;
  return fail(ErrorCode::kUsage, "there is no thread " + wanted, "the threads are " + known);
}

Result<std::vector<ThreadSource>> asked_threads(const std::string& path,
                                                const std::string& wanted) {
  Result<std::vector<ThreadSource>> threads = recorded_threads(path);
  if (!threads || wanted.empty()) return threads;
  Result<ThreadSource> one = pick_thread(*threads, wanted);
  if (!one) return fail(std::move(one.error()));
  threads->assign(1, std::move(*one));
  return threads;
}

std::vector<BundleModule> modules_of(const ThreadSource& thread) {
  if (thread.in_bundle && thread.in_bundle->about) return thread.in_bundle->about->modules;
  if (!thread.qemu) return {};
  const std::lock_guard lock(thread.qemu->mutex);
  return thread.qemu->known_maps().modules;
}

Result<OpenedThread> open_recorded(const ThreadSource& thread, std::uint64_t limit_records) {
  if (thread.is_stream) {
    Result<LoadedSnapshot> loaded = load_snapshot(thread.path);
    if (!loaded) return fail(std::move(loaded.error()));
    return opened_thread(std::move(*loaded), limit_records);
  }
  if (thread.perf_data) return thread.perf_data->open_thread(thread.thread, limit_records);
  if (thread.in_bundle) return open_thread(*thread.in_bundle, limit_records);
  if (thread.lldb) return thread.lldb->open_thread(thread.thread);
  return open_in_folder(thread, limit_records);
}

}  // namespace tailtrace
