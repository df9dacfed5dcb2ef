#include "plugin/cli/doctor_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plugin/cli/units.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string painted(std::string_view text, std::string_view code, bool color) {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string verdict_text(const Verdict& verdict, bool is_auto, bool color) {
  std::string mark = verdict.works ? painted("yes", "32", color) : painted("no ", "31", color);
  std::string text = fmt::format("  {:12} {}  {}{}\n", verdict.engine, mark, verdict.summary,
                                 is_auto ? "   <- auto" : "");
  if (!verdict.why.empty()) text += fmt::format("{:20}why:  {}\n", "", verdict.why);
  if (!verdict.fix.empty()) text += fmt::format("{:20}fix:  {}\n", "", verdict.fix);
  return text;
}

std::string memory_text(const Diagnosis& diagnosis) {
  const auto limit = diagnosis.trials.memlock_limit_bytes;
  std::string own = limit < 0 ? "unlimited" : format_size(static_cast<std::uint64_t>(limit));
  if (!diagnosis.machine.perf_event_mlock_kb) return own + " for a process";
  return fmt::format("{} KiB for a user's perf buffers on each processor, then {} for a process",
                     *diagnosis.machine.perf_event_mlock_kb, own);
}

std::string pmus_text(const Machine& machine) {
  std::string names;
  for (const Pmu& pmu : machine.pmus) names += (names.empty() ? "" : " ") + pmu.name;
  return names.empty() ? "none" : names;
}

std::string machine_text(const Diagnosis& diagnosis) {
  const Machine& machine = diagnosis.machine;
  const Processor& cpu = machine.cpu;
  auto line = [](std::string_view name, const std::string& text) {
    return fmt::format("  {:12} {}\n", name, text);
  };
  std::string text =
      line("processor", fmt::format("{} x {} ({}, family {} model {} stepping {})", cpu.count,
                                    cpu.name, cpu.vendor, cpu.family, cpu.model, cpu.stepping));
  text += line("kernel", "Linux " + machine.kernel);
  text += line("runs on", machine.hypervisor.empty()
                              ? "bare metal"
                              : fmt::format("a virtual machine ({})", machine.hypervisor));
  if (!machine.container.empty())
    text += line("container", fmt::format("{}, seccomp filter {}", machine.container,
                                          machine.seccomp == 0 ? "off" : "on"));
  text += line("PMUs", pmus_text(machine));
  text += line("memory lock", memory_text(diagnosis));
  return text;
}

OrderedJson verdicts_json(const std::vector<Verdict>& verdicts, const char* key) {
  OrderedJson list = OrderedJson::array();
  for (const Verdict& verdict : verdicts)
    list.push_back({{key, verdict.engine},
                    {"works", verdict.works},
                    {"summary", verdict.summary},
                    {"why", verdict.why},
                    {"fix", verdict.fix}});
  return list;
}

template <class T>
OrderedJson number_or_null(const std::optional<T>& number) {
  return number ? OrderedJson(*number) : OrderedJson(nullptr);
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson machine_json(const Diagnosis& diagnosis) {
  const Machine& machine = diagnosis.machine;
  OrderedJson pmus = OrderedJson::object();
  for (const Pmu& pmu : machine.pmus) pmus[pmu.name] = pmu.type;
  return {
      {"processor",
       {{"vendor", machine.cpu.vendor},
        {"name", machine.cpu.name},
        {"family", machine.cpu.family},
        {"model", machine.cpu.model},
        {"stepping", machine.cpu.stepping},
        {"count", machine.cpu.count},
        {"intel_pt", machine.cpu.has("intel_pt")},
        {"bts", machine.cpu.has("bts")},
        {"lbr_depth", number_or_null(machine.lbr_depth)}}},
      {"kernel", machine.kernel},
      {"hypervisor", text_or_null(machine.hypervisor)},
      {"container", text_or_null(machine.container)},
      {"seccomp", machine.seccomp},
      {"pmus", pmus},
      {"perf_event_paranoid", number_or_null(machine.perf_event_paranoid)},
      {"perf_event_mlock_kb", number_or_null(machine.perf_event_mlock_kb)},
      {"memlock_limit_bytes", diagnosis.trials.memlock_limit_bytes < 0
                                  ? OrderedJson(nullptr)
                                  : OrderedJson(diagnosis.trials.memlock_limit_bytes)},
      {"yama_ptrace_scope", number_or_null(machine.yama_ptrace_scope)},
  };
}

OrderedJson tools_json(const Trials& trials) {
  OrderedJson tools = OrderedJson::object();
  for (const Tool* tool : {&trials.gdb, &trials.gdbserver, &trials.lldb, &trials.qemu})
    tools[tool->name] = {{"path", text_or_null(tool->path)},
                         {"version", text_or_null(tool->version)}};
  return tools;
}

}  // namespace

Diagnosis diagnose(Machine machine, Trials trials) {
  Diagnosis diagnosis{std::move(machine), std::move(trials), {}, {}};
  diagnosis.engines = judge(diagnosis.machine, diagnosis.trials);
  diagnosis.surroundings = judge_surroundings(diagnosis.machine, diagnosis.trials);
  return diagnosis;
}

std::string doctor_text(const Diagnosis& diagnosis, bool color) {
  const Verdict* chosen = auto_choice(diagnosis.engines);
  std::string text = "engines, best first\n";
  for (const Verdict& verdict : diagnosis.engines)
    text += verdict_text(verdict, &verdict == chosen, color);
  text += "\nbesides\n";
  for (const Verdict& verdict : diagnosis.surroundings) text += verdict_text(verdict, false, color);
  return text + "\nthis machine\n" + machine_text(diagnosis);
}

OrderedJson doctor_json(const Diagnosis& diagnosis) {
  const Verdict* chosen = auto_choice(diagnosis.engines);
  return {{"version", TAILTRACE_VERSION},
          {"auto", chosen == nullptr ? OrderedJson(nullptr) : OrderedJson(chosen->engine)},
          {"engines", verdicts_json(diagnosis.engines, "name")},
          {"besides", verdicts_json(diagnosis.surroundings, "name")},
          {"tools", tools_json(diagnosis.trials)},
          {"machine", machine_json(diagnosis)}};
}

}  // namespace tailtrace
