#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "decoder/base/file.h"
#include "decoder/base/own_file.h"
#include "decoder/bundle/bundle.h"
#include "decoder/bundle/bundle_about_json.h"
#include "decoder/bundle/bundle_format.h"
#include "decoder/symbols/generated_files.h"

namespace tailtrace {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> bad(const std::string& path, std::string why) {
  return fail(ErrorCode::kBadInput, "cannot read the bundle " + path, std::move(why));
}

// A file that lies in the bundle's folder itself is no link. Errors: kBadInput.
Result<void> check_named_file(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return check_own_file(path.substr(0, slash), std::string_view(path).substr(slash + 1));
}

Result<void> check_links(const Bundle& bundle) {
  for (const BundleModule& module : bundle.about->modules)
    if (auto ok = check_own_file(bundle.path, module.copy); !ok) return ok;
  return check_own_file(bundle.path, bundle.about->core);
}

// A number of an object, within limits; false when it is none.
template <class T>
bool read_number(const Json& object, const char* name, std::uint64_t least, std::uint64_t most,
                 T& number) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return false;
  auto value = found->get<std::uint64_t>();
  if (value < least || value > most) return false;
  number = static_cast<T>(value);
  return true;
}

// Empty when it is a thread; else what is wrong.
std::string read_thread(const Json& object, const std::string& path, std::set<std::uint64_t>& files,
                        BundleThread& thread) {
  constexpr std::uint64_t kMaxId = std::numeric_limits<std::int32_t>::max();
  std::uint64_t file = 0;
  if (!object.is_object()) return "it is no object";
  if (!read_number(object, "file", 1, kMaxId, file)) return "it has no file number";
  if (!files.insert(file).second) return fmt::format("file {} is another thread's", file);
  if (!read_number(object, "pid", 0, kMaxId, thread.thread.pid)) return "it has no pid";
  if (!read_number(object, "tid", 0, kMaxId, thread.thread.tid)) return "it has no tid";
  if (!read_number(object, "records", 0, kBundleMaxRecords, thread.records))
    return "it has no number of records";
  auto engine = object.find("engine");
  if (engine != object.end() && engine->is_string())
    thread.engine = engine->get<std::string>().substr(0, kBundleMaxEngine_bytes);
  thread.records_path = bundle_records_path(path, file);
  thread.stream_path = bundle_stream_path(path, file);
  return {};
}

}  // namespace

Error missing_recording(const std::string& path) {
  Error missing = system_error("cannot open " + path, ENOENT);
  missing.fix = "name a recording first: what --keep or save wrote, a record stream, a perf.data";
  return missing;
}

bool is_bundle(const std::string& path) {
  struct stat info;
  return ::stat((path + "/" + kBundleName).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

namespace {

Result<Bundle> parse_bundle(std::string_view text, const std::string& path,
                            const std::shared_ptr<BundleAbout>& about) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad(path, std::string(kBundleName) + " is no JSON object");
  auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string()) return bad(path, "it has no schema");
  if (*schema != kBundleSchema)
    return fail(ErrorCode::kBadInput, "cannot read the bundle " + path,
                "it is of the version \"" + schema->get<std::string>().substr(0, 64) + "\"",
                fmt::format("read it with the tailtrace that wrote it; this one reads \"{}\"",
                            kBundleSchema));
  auto threads = json.find("threads");
  if (threads == json.end() || !threads->is_array()) return bad(path, "it has no list of threads");
  if (threads->empty()) return bad(path, "it has no thread");
  if (threads->size() > kBundleMaxThreads) return bad(path, "it has too many threads");
  Bundle bundle{path, {}, nullptr};
  *about = read_about(json);
  std::error_code ignored;
  const std::string folder = std::filesystem::absolute(path, ignored).string();
  std::set<std::uint64_t> files;
  for (const Json& object : *threads) {
    BundleThread thread;
    std::string wrong = read_thread(object, path, files, thread);
    if (!wrong.empty())
      return bad(path,
                 fmt::format("thread {} in {}: {}", bundle.threads.size() + 1, kBundleName, wrong));
    thread.folder = folder;
    thread.about = about;
    about->threads[thread.thread] = read_thread_state(object);
    bundle.threads.push_back(std::move(thread));
  }
  bundle.about = about;
  return bundle;
}

}  // namespace

Result<Bundle> read_bundle(const std::string& path) {
  if (auto ok = check_own_file(path, kBundleName); !ok) return fail(std::move(ok.error()));
  Result<Bytes> text = read_file(path + "/" + kBundleName, kBundleMaxJson_bytes);
  if (!text) return fail(std::move(text.error()));
  auto about = std::make_shared<BundleAbout>();
  Result<Bundle> bundle = parse_bundle(as_text(*text), path, about);
  if (!bundle) return bundle;
  if (auto ok = check_links(*bundle); !ok) return fail(std::move(ok.error()));
  compare_build_ids(*about);
  return bundle;
}

Result<Bundle> parse_bundle(std::string_view text, const std::string& path) {
  return parse_bundle(text, path, std::make_shared<BundleAbout>());
}

Result<BundleRecords> map_records(const BundleThread& thread) {
  if (auto ok = check_named_file(thread.records_path); !ok) return fail(std::move(ok.error()));
  std::uint64_t wanted_bytes = thread.records * sizeof(BranchRecord);
  struct stat info;
  if (::stat(thread.records_path.c_str(), &info) != 0)
    return fail(system_error("cannot open " + thread.records_path));
  if (static_cast<std::uint64_t>(info.st_size) != wanted_bytes)
    return fail(ErrorCode::kBadInput, "cannot read " + thread.records_path,
                fmt::format("it has {} bytes in place of {}", info.st_size, wanted_bytes));
  if (wanted_bytes == 0) return BundleRecords{};
  Result<MappedFile> mapped = MappedFile::open(thread.records_path);
  if (!mapped) return fail(std::move(mapped.error()));
  auto file = std::make_shared<const MappedFile>(std::move(*mapped));
  if (file->bytes().size() != wanted_bytes)
    return fail(ErrorCode::kGone, "cannot read " + thread.records_path,
                "it was replaced while it was opened");
  const auto* first = reinterpret_cast<const BranchRecord*>(file->bytes().data());
  return BundleRecords{file, {first, thread.records}};
}

namespace {

Result<RecordStream> read_own_stream(const BundleThread& thread) {
  if (auto ok = check_named_file(thread.stream_path); !ok) return fail(std::move(ok.error()));
  return read_record_stream(thread.stream_path);
}

}  // namespace

Result<Position> first_position(const BundleThread& thread) {
  Result<RecordStream> stream = read_own_stream(thread);
  if (!stream) return fail(std::move(stream.error()));
  return stream->header.first;
}

namespace {

// Everything of a thread but its records.
Result<LoadedSnapshot> load_frame(const BundleThread& thread) {
  Result<RecordStream> stream = read_own_stream(thread);
  if (!stream) return fail(std::move(stream.error()));
  if (stream->header.thread != thread.thread)
    return fail(ErrorCode::kBadInput, "cannot read " + thread.stream_path,
                "it is of another thread than the bundle says");
  stream->records.clear();
  if (thread.about)
    stream->maps = maps_to_copies(stream->maps, thread.about->modules, thread.folder);
  LoadedSnapshot loaded = snapshot_of(std::move(*stream), thread.stream_path);
  if (!thread.about) return loaded;
  for (Error& problem : other_modules(*thread.about)) loaded.problems.push_back(std::move(problem));
  loaded.perf_map = copy_of(thread.about->modules, perf_map_path(thread.thread.pid), thread.folder);
  return loaded;
}

}  // namespace

Result<LoadedSnapshot> load_thread(const BundleThread& thread) {
  Result<BundleRecords> mapped = map_records(thread);
  if (!mapped) return fail(std::move(mapped.error()));
  Result<LoadedSnapshot> loaded = load_frame(thread);
  if (!loaded) return loaded;
  auto snapshot = std::make_shared<ThreadSnapshot>(*loaded->snapshot);
  snapshot->records.assign(mapped->records.begin(), mapped->records.end());
  loaded->snapshot = std::move(snapshot);
  return loaded;
}

Result<OpenedThread> open_thread(const BundleThread& thread, std::uint64_t limit_records) {
  Result<BundleRecords> mapped = map_records(thread);
  if (!mapped) return fail(std::move(mapped.error()));
  Result<LoadedSnapshot> loaded = load_frame(thread);
  if (!loaded) return fail(std::move(loaded.error()));
  OpenedThread opened =
      records_in_place(*loaded->snapshot, std::move(mapped->owner), mapped->records, limit_records);
  opened.maps = std::move(loaded->maps);
  opened.problems = std::move(loaded->problems);
  opened.perf_map = std::move(loaded->perf_map);
  if (!thread.about) return opened;
  auto state = thread.about->threads.find(thread.thread);
  if (state != thread.about->threads.end()) opened.stack = state->second.stack;
  return opened;
}

}  // namespace tailtrace
