#include "plugin/cli/decode_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "decoder/base/json_text.h"
#include "decoder/code/code_image.h"
#include "decoder/pt/event_text.h"
#include "decoder/pt/record_sink.h"
#include "plugin/cli/event_fields.h"
#include "plugin/cli/json_list.h"

namespace tailtrace {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSchema = "tailtrace.decode/1";

std::string text_of(const CodeImage& code, const Instruction& insn, CodeMode mode) {
  Bytes bytes(insn.size_bytes);
  bytes.resize(code.read(insn.address, bytes, code.newest()));
  return disassemble(bytes, insn.address, mode);
}

// What is printed for an instruction, remembered: loops come again.
class InstructionLines {
 public:
  using Make = std::function<std::string(const Instruction&, const pt::RunState&)>;
  explicit InstructionLines(Make make) : make_(std::move(make)) {}

  const std::string& of(const Instruction& insn, const pt::RunState& state) {
    if (entries_.empty()) entries_.resize(kEntries);
    Entry& entry = entries_[insn.address.value % kEntries];
    const bool is_known = entry.address == insn.address && entry.mode == state.mode &&
                          entry.in_transaction == state.in_transaction && !entry.line.empty();
    if (!is_known) entry = {insn.address, state.mode, state.in_transaction, make_(insn, state)};
    return entry.line;
  }

 private:
  static constexpr std::size_t kEntries = 1u << 16;
  struct Entry {
    Address address;
    CodeMode mode = CodeMode::k64;
    bool in_transaction = false;
    std::string line;
  };
  Make make_;
  std::vector<Entry> entries_;
};

// More than the numbers and names of a record take. Formatting into an array takes half of the time
// that it takes into a buffer which may grow.
using RecordText = std::array<char, 256>;

// As BranchRecord's members.
void print(LineOutput& out, const BranchRecord& record) {
  RecordText text;
  const char* end =
      fmt::format_to(text.data(), FMT_COMPILE("{:016x} {:016x} {:>6} {}"), record.from.value,
                     record.to.value, record.insns, kind_name(record.kind));
  out.put({text.data(), end});
  if (record.time != 0) out.print(FMT_COMPILE(" time={}"), record.time);
  if (record.is_async()) out.put(" async");
  if ((record.flags & kFlagKernel) != 0) out.put(" kernel");
  if ((record.flags & kFlagInTransaction) != 0) out.put(" in-transaction");
  if ((record.flags & kFlagAbort) != 0) out.put(" abort");
  if (record.extra != 0) out.print(FMT_COMPILE(" extra={}"), record.extra);
  out.put("\n");
}

// What json_text() makes of an object; there may be many.
std::string_view json_of(const BranchRecord& record, RecordText& text) {
  const char* end = fmt::format_to(text.data(),
                                   FMT_COMPILE(R"({{"from":"0x{:x}","to":"0x{:x}","kind":"{}",)"
                                               R"("insns":{},"time":{},"flags":{},"extra":{}}})"),
                                   record.from.value, record.to.value, kind_name(record.kind),
                                   record.insns, record.time, record.flags, record.extra);
  return {text.data(), end};
}

pt::Detail detail_of(DecodeItems items) {
  switch (items) {
    case DecodeItems::kRecords:
      return pt::Detail::kBranches;
    case DecodeItems::kEvents:
      return pt::Detail::kEvents;
    default:
      return pt::Detail::kInstructions;
  }
}

class TextPrinter final : public DecodePrinter {
 public:
  TextPrinter(const DecodePrinterConfig& config, const CodeImage& code)
      : items_(config.items),
        out_(config.out),
        lines_([this, &code](const Instruction& insn, const pt::RunState& state) {
          const std::uint64_t at = insn.address.value;
          if (items_ == DecodeItems::kAddresses) return fmt::format("{:016x}\n", at);
          return fmt::format("{:016x}  {}\n", at, text_of(code, insn, state.mode));
        }),
        text_(config.items == DecodeItems::kEvents) {
    if (!config.name.empty()) out_.print(FMT_COMPILE("[{}]\n"), config.name);
    // As ptxed.
    if (config.unknown_cpu && items_ != DecodeItems::kRecords)
      out_.put("[0, 0: config error: unknown cpu]\n");
  }

  pt::Detail detail() const override { return detail_of(items_); }
  void branches(const pt::BranchRun& run) override {
    records_.branches(run);
    print_records();
  }
  void instructions(std::span<const Instruction> run, const pt::RunState& state) override {
    if (items_ == DecodeItems::kRecords) {
      records_.instructions(run, state);
      return print_records();
    }
    if (items_ == DecodeItems::kEvents) return;
    for (const Instruction& insn : run) out_.put(lines_.of(insn, state));
  }

  void event(const pt::Event& event) override {
    if (items_ == DecodeItems::kRecords) {
      records_.event(event);
      return print_records();
    }
    std::string text = text_.of(event);
    if (!text.empty()) out_.print(FMT_COMPILE("{}\n"), text);
  }

  void gap(const pt::Gap& gap) override {
    ++gaps_;
    if (items_ == DecodeItems::kRecords) {
      records_.gap(gap);
      return print_records();
    }
    out_.print(FMT_COMPILE("{}\n"), text_.of(gap));
  }

  void finish() override {
    records_.finish();
    if (items_ == DecodeItems::kRecords) print_records();
    out_.flush();
  }

 private:
  void print_records() {
    for (const BranchRecord& record : records_.drain()) print(out_, record);
  }

  DecodeItems items_;
  LineOutput out_;
  InstructionLines lines_;
  pt::RecordSink records_;
  pt::EventText text_;
};

class JsonPrinter final : public DecodePrinter {
 public:
  JsonPrinter(const DecodePrinterConfig& config, const CodeImage& code)
      : items_(config.items),
        out_(config.out),
        list_(out_, config.json, head(config), "items"),
        lines_([this, &code](const Instruction& insn, const pt::RunState& state) {
          ordered_json item = {{"instruction", json_address(insn.address)}};
          if (items_ == DecodeItems::kInstructions) item["text"] = text_of(code, insn, state.mode);
          if (state.in_transaction) item["in_transaction"] = true;
          return json_text(item);
        }) {}

  pt::Detail detail() const override { return detail_of(items_); }
  void branches(const pt::BranchRun& run) override {
    records_.branches(run);
    put_records();
  }
  void instructions(std::span<const Instruction> run, const pt::RunState& state) override {
    if (items_ == DecodeItems::kRecords) {
      records_.instructions(run, state);
      return put_records();
    }
    if (items_ == DecodeItems::kEvents) return;
    for (const Instruction& insn : run) list_.put(lines_.of(insn, state));
  }

  void event(const pt::Event& event) override {
    if (items_ == DecodeItems::kRecords) {
      records_.event(event);
      return put_records();
    }
    std::string text = text_.of(event);
    if (text.empty()) return;
    ordered_json item = {{"event", pt::EventText::name(event.kind)},
                         {"text", text.substr(1, text.size() - 2)}};
    if (!event.ip.is_null()) item["ip"] = json_address(event.ip);
    // An overflow goes on at `ip`.
    const char* other = event.kind == pt::EventKind::kOverflow ? "from" : "to";
    if (!event.to.is_null()) item[other] = json_address(event.to);
    add_event_fields(item, event, text_.data());
    if (event.has(pt::kEventHasTime)) item["time"] = event.time;
    list_.put(json_text(item));
  }

  void gap(const pt::Gap& gap) override {
    ++gaps_;
    if (items_ == DecodeItems::kRecords) {
      records_.gap(gap);
      return put_records();
    }
    std::string text = text_.of(gap);
    list_.put(json_text(ordered_json{{"gap", pt::error_text(gap.error)},
                                     {"text", text.substr(1, text.size() - 2)},
                                     {"ip", json_address(gap.ip)},
                                     {"offset_bytes", gap.offset_bytes},
                                     {"size_bytes", gap.size_bytes}}));
  }

  void finish() override {
    records_.finish();
    if (items_ == DecodeItems::kRecords) put_records();
    list_.finish();
    out_.flush();
  }

 private:
  static ordered_json head(const DecodePrinterConfig& config) {
    ordered_json head = {{"schema", kSchema}};
    if (config.json == JsonForm::kDocument) head["decoder"] = config.decoder;
    if (!config.name.empty()) head["trace"] = config.name;
    return head;
  }

  void put_records() {
    RecordText text;
    for (const BranchRecord& record : records_.drain()) list_.put(json_of(record, text));
  }

  DecodeItems items_;
  LineOutput out_;
  JsonList list_;
  InstructionLines lines_;
  pt::RecordSink records_;
  pt::EventText text_;
};

}  // namespace

std::unique_ptr<DecodePrinter> make_decode_printer(const DecodePrinterConfig& config,
                                                   const CodeImage& code) {
  if (config.json == JsonForm::kNone) return std::make_unique<TextPrinter>(config, code);
  return std::make_unique<JsonPrinter>(config, code);
}

}  // namespace tailtrace
