#include "plugin/cli/decode_printer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "decoder/code/code_reader.h"
#include "decoder/pt/event_text.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSchema = "tailtrace.decode/1";

// Gathers lines and writes them in large pieces.
class Output {
 public:
  explicit Output(std::FILE* out) : out_(out) {}
  ~Output() { flush(); }
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > kFlush_bytes) flush();
  }
  // The fast way of what is printed most: 16 hexadecimal digits and a line feed.
  void address_line(Address address) {
    char line[17];
    std::uint64_t value = address.value;
    for (int i = 15; i >= 0; --i, value >>= 4) line[i] = "0123456789abcdef"[value & 15];
    line[16] = '\n';
    buffer_.append(line, line + sizeof line);
    if (buffer_.size() > kFlush_bytes) flush();
  }
  void flush() {
    std::fwrite(buffer_.data(), 1, buffer_.size(), out_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kFlush_bytes = 1 << 16;
  std::FILE* out_;
  fmt::memory_buffer buffer_;
};

// Disassembles what is executed.
class Disassembler {
 public:
  explicit Disassembler(const CodeImage& code) : code_(code) {}

  std::string at(const Instruction& insn, CodeMode mode) const {
    Bytes bytes(insn.size_bytes);
    bytes.resize(code_.read(insn.address, bytes, code_.newest()));
    return disassemble(bytes, insn.address, mode);
  }

 private:
  const CodeImage& code_;
};

std::string text_of(const BranchRecord& record) {
  std::string text = fmt::format("{:016x} {:016x} {:>6} {}", record.from.value, record.to.value,
                                 record.insns, kind_name(record.kind));
  if (record.time != 0) text += fmt::format(" time={}", record.time);
  if (record.is_async()) text += " async";
  if ((record.flags & kFlagInTransaction) != 0) text += " in-transaction";
  if ((record.flags & kFlagAbort) != 0) text += " abort";
  if (record.extra != 0) text += fmt::format(" extra={}", record.extra);
  return text;
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
        disassembler_(code),
        text_(config.items == DecodeItems::kEvents) {
    if (!config.name.empty()) out_.print("[{}]\n", config.name);
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
    if (items_ == DecodeItems::kAddresses)
      for (const Instruction& insn : run) out_.address_line(insn.address);
    if (items_ == DecodeItems::kInstructions)
      for (const Instruction& insn : run)
        out_.print("{:016x}  {}\n", insn.address.value, disassembler_.at(insn, state.mode));
  }

  void event(const pt::Event& event) override {
    if (items_ == DecodeItems::kRecords) {
      records_.event(event);
      return print_records();
    }
    std::string text = text_.of(event);
    if (!text.empty()) out_.print("{}\n", text);
  }

  void gap(const pt::Gap& gap) override {
    ++gaps_;
    if (items_ != DecodeItems::kRecords)
      out_.print("{}\n", pt::EventText::of(gap));
    else
      records_.gap(gap);
  }

  void finish() override {
    records_.finish();
    if (items_ == DecodeItems::kRecords) print_records();
    out_.flush();
  }

 private:
  void print_records() {
    for (const BranchRecord& record : records_.drain()) out_.print("{}\n", text_of(record));
  }

  DecodeItems items_;
  Output out_;
  Disassembler disassembler_;
  pt::RecordSink records_;
  pt::EventText text_;
};

// As a document: {"schema": ..., "items": [...]}, written as it comes; as lines: an item each.
class JsonPrinter final : public DecodePrinter {
 public:
  JsonPrinter(const DecodePrinterConfig& config, const CodeImage& code)
      : config_(config), out_(config.out), disassembler_(code) {
    if (lines()) return;
    ordered_json head = {{"schema", kSchema}, {"decoder", config.decoder}};
    if (!config.name.empty()) head["trace"] = config.name;
    std::string text = dump(head);
    text.pop_back();
    out_.print("{},\"items\":[", text);
  }

  pt::Detail detail() const override { return detail_of(config_.items); }
  void branches(const pt::BranchRun& run) override {
    records_.branches(run);
    put_records();
  }
  void instructions(std::span<const Instruction> run, const pt::RunState& state) override {
    if (config_.items == DecodeItems::kRecords) {
      records_.instructions(run, state);
      return put_records();
    }
    if (config_.items == DecodeItems::kEvents) return;
    for (const Instruction& insn : run) {
      ordered_json item = {{"instruction", json_address(insn.address)}};
      if (config_.items == DecodeItems::kInstructions)
        item["text"] = disassembler_.at(insn, state.mode);
      if (state.in_transaction) item["in_transaction"] = true;
      put(item);
    }
  }

  void event(const pt::Event& event) override {
    if (config_.items == DecodeItems::kRecords) {
      records_.event(event);
      return put_records();
    }
    std::string text = text_.of(event);
    if (text.empty()) return;
    ordered_json item = {{"event", pt::EventText::name(event.kind)},
                         {"text", text.substr(1, text.size() - 2)}};
    if (!event.ip.is_null()) item["ip"] = json_address(event.ip);
    if (!event.to.is_null()) item["to"] = json_address(event.to);
    if (event.has(pt::kEventHasTime)) item["time"] = event.time;
    put(item);
  }

  void gap(const pt::Gap& gap) override {
    ++gaps_;
    if (config_.items == DecodeItems::kRecords) return records_.gap(gap);
    std::string text = pt::EventText::of(gap);
    put({{"gap", pt::error_text(gap.error)},
         {"text", text.substr(1, text.size() - 2)},
         {"ip", json_address(gap.ip)},
         {"offset_bytes", gap.offset_bytes},
         {"size_bytes", gap.size_bytes}});
  }

  void finish() override {
    records_.finish();
    if (config_.items == DecodeItems::kRecords) put_records();
    if (!lines()) out_.print("{}]}}\n", first_ ? "" : "\n");
    out_.flush();
  }

 private:
  bool lines() const { return config_.json == JsonForm::kLines; }
  static std::string dump(const ordered_json& item) {
    return item.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }

  void put(ordered_json item) {
    if (lines()) {
      ordered_json whole = {{"schema", kSchema}};
      if (!config_.name.empty()) whole["trace"] = config_.name;
      whole.update(item);
      return out_.print("{}\n", dump(whole));
    }
    out_.print("{}\n{}", first_ ? "" : ",", dump(item));
    first_ = false;
  }

  void put_records() {
    for (const BranchRecord& record : records_.drain())
      put({{"from", json_address(record.from)},
           {"to", json_address(record.to)},
           {"kind", kind_name(record.kind)},
           {"insns", record.insns},
           {"time", record.time},
           {"flags", record.flags},
           {"extra", record.extra}});
  }

  DecodePrinterConfig config_;
  Output out_;
  Disassembler disassembler_;
  pt::RecordSink records_;
  pt::EventText text_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<DecodePrinter> make_decode_printer(const DecodePrinterConfig& config,
                                                   const CodeImage& code) {
  if (config.json == JsonForm::kNone) return std::make_unique<TextPrinter>(config, code);
  return std::make_unique<JsonPrinter>(config, code);
}

}  // namespace tailtrace
