#include "plugin/recorder/black_box.h"

#include <fmt/format.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "decoder/base/file.h"
#include "decoder/base/own_folder.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/unwinder.h"
#include "plugin/recorder/core_file.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCommandLine_bytes = 1 << 22;
constexpr std::size_t kMaxShownCommand_bytes = 1000;
constexpr char kCoreName[] = "core";

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

StackRegisters stack_registers(const user_regs_struct& r) {
  return {{r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
           r.r13, r.r14, r.r15, r.rip}};
}

BundleThreadState state_of(Subject& subject, ThreadId thread, Unwinder& unwinder) {
  BundleThreadState state{subject.name(thread), {}};
  auto registers = subject.registers(thread);
  if (!registers) return state;
  const user_regs_struct& r = *registers;
  state.registers = {
      {"rax", r.rax}, {"rbx", r.rbx},       {"rcx", r.rcx},         {"rdx", r.rdx},
      {"rsi", r.rsi}, {"rdi", r.rdi},       {"rbp", r.rbp},         {"rsp", r.rsp},
      {"r8", r.r8},   {"r9", r.r9},         {"r10", r.r10},         {"r11", r.r11},
      {"r12", r.r12}, {"r13", r.r13},       {"r14", r.r14},         {"r15", r.r15},
      {"rip", r.rip}, {"eflags", r.eflags}, {"fs_base", r.fs_base}, {"gs_base", r.gs_base}};
  state.stack = unwinder.stack(stack_registers(r));
  return state;
}

// Where those pages begin that records lead through: many times, and few.
std::set<Address> pages_of(std::span<const BranchRecord> records) {
  std::set<Address> pages;
  Address last;
  for (const BranchRecord& record : records)
    for (Address address : {record.from, record.to}) {
      const Address page{address.value & ~(kPage_bytes - 1)};
      if (page != last) pages.insert(page);
      last = page;
    }
  return pages;
}

// One bundle on its way.
class Box {
 public:
  Box(Subject& subject, const Occasion& occasion, const FlightPlan& plan,
      std::vector<Error>& remarks)
      : subject_(subject), occasion_(occasion), plan_(plan), remarks_(remarks) {}

  Result<BundleWriter> fill(const std::string& path) {
    auto writer = BundleWriter::create(path);
    if (!writer) return writer;
    about_.cause = occasion_.cause;
    about_.signal = occasion_.signal;
    about_.thread = occasion_.thread;
    about_.command = occasion_.command;
    about_.clocks = {occasion_.began, clock_now()};
    maps_ = subject_.code_maps();
    if (auto ok = add_threads(*writer); !ok) return fail(std::move(ok.error()));
    if (auto ok = add_modules(*writer); !ok) return fail(std::move(ok.error()));
    if (plan_.core)
      if (auto ok = add_core(writer->folder()); !ok) return fail(std::move(ok.error()));
    for (const Error& remark : writer->remarks()) remarks_.push_back(remark);
    writer->describe(std::move(about_));
    return writer;
  }

 private:
  // The one that it happened to comes first.
  Result<void> add_threads(BundleWriter& writer) {
    std::vector<ThreadId> threads = subject_.threads();
    std::ranges::stable_partition(threads, [&](ThreadId t) { return t == occasion_.thread; });
    const auto read = [this](Address address, std::span<std::uint8_t> out) {
      return subject_.read_memory(address, out);
    };
    Unwinder unwinder(maps_, read, threads.empty() ? 0 : threads.front().pid);
    std::size_t added = 0;
    for (ThreadId thread : threads) {
      auto snapshot = subject_.snapshot(thread);
      if (!snapshot) {
        remarks_.push_back(std::move(snapshot.error()));
        continue;
      }
      if (auto ok = writer.add(*snapshot, maps_, perf_map_of(thread.pid)); !ok) return ok;
      note_executed(*snapshot);
      about_.threads[thread] = state_of(subject_, thread, unwinder);
      ++added;
    }
    if (added != 0) return {};
    return fail(ErrorCode::kGone, "there is no history to save", "no thread was recorded yet");
  }

  // Which mappings the histories lead through. What is gone from there may have been executed, too.
  void note_executed(const ThreadSnapshot& snapshot) {
    if (mappings_.empty()) mappings_ = parse_maps(maps_);
    const std::set<Address> pages = pages_of(snapshot.records);
    auto note = [&](const Mapping& mapping) {
      const auto page = pages.lower_bound(mapping.begin);
      if (mapping.has_file() && page != pages.end() && *page < mapping.end)
        executed_.insert(mapping.path);
    };
    std::ranges::for_each(mappings_, note);
    for (const FormerModule& module : parse_former_maps(snapshot.former_maps))
      std::ranges::for_each(module.mappings, note);
  }

  // A core file needs all that is mapped, a history what it leads through.
  Result<void> add_modules(BundleWriter& writer) {
    std::set<std::string> wanted = executed_;
    for (const Mapping& mapping : mappings_)
      if (plan_.core && mapping.executable && mapping.has_file()) wanted.insert(mapping.path);
    for (const std::string& path : wanted) {
      auto file = ElfFile::open(path);
      const std::string from = file && plan_.copy_modules ? path : "";
      auto ok = writer.add_module({path, file ? file->build_id() : "", {}}, from);
      if (!ok) return ok;
    }
    return {};
  }

  Result<void> add_core(const std::string& folder) {
    ThreadId first = occasion_.thread;
    if (first.tid == 0) first = subject_.threads().front();
    CoreSettings settings{first, occasion_.signal, occasion_.command};
    if (auto ok = write_core(subject_, settings, folder + "/" + kCoreName); !ok) return ok;
    about_.core = kCoreName;
    return {};
  }

  Subject& subject_;
  const Occasion& occasion_;
  const FlightPlan& plan_;
  std::vector<Error>& remarks_;
  std::string maps_;
  std::vector<Mapping> mappings_;   // by address
  std::set<std::string> executed_;  // paths
  BundleAbout about_;
};

}  // namespace

BundleClock clock_now() {
  return {__rdtsc(), nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_REALTIME)};
}

std::string command_of(std::int32_t pid) {
  auto text = read_file(fmt::format("/proc/{}/cmdline", pid), kMaxCommandLine_bytes);
  std::string line(text ? as_text(*text) : std::string_view());
  while (line.ends_with('\0')) line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line.substr(0, kMaxShownCommand_bytes);
}

Result<void> check_place(const std::string& path) {
  auto writer = BundleWriter::create(path);
  if (!writer) return fail(std::move(writer.error()));
  return {};
}

std::string free_snapshot_path(const std::string& bundle) {
  std::error_code ignored;
  for (int number = 1;; ++number) {
    std::string path = fmt::format("{}.{}", bundle, number);
    if (!fs::exists(fs::symlink_status(path, ignored))) return path;
  }
}

Result<BundleWriter> put_together(Subject& subject, const Occasion& occasion,
                                  const FlightPlan& plan, const std::string& path,
                                  std::vector<Error>& remarks) {
  auto writer = Box(subject, occasion, plan, remarks).fill(path);
  const bool is_elsewhere_better = !writer && writer.error().code != ErrorCode::kGone;
  if (!is_elsewhere_better || plan.fallback.empty() || plan.fallback == path) return writer;
  NewParents(plan.fallback).keep();
  auto second = Box(subject, occasion, plan, remarks).fill(plan.fallback);
  if (!second) return writer;
  remarks.push_back(std::move(writer.error()));
  return second;
}

}  // namespace tailtrace
