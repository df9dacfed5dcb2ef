#include "plugin/cli/manual.h"

#include <fmt/format.h>

#include <cctype>

#include "plugin/cli/help.h"

namespace tailtrace {
namespace {

// Text as roff prints it literally.
std::string roff(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    bool line_begins = escaped.empty() || escaped.back() == '\n';
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '`')
      escaped += "\\(ga";
    else
      escaped += c;
  }
  return escaped;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

// Lines may end behind each choice.
std::string breakable(const std::string& choices) {
  std::string text;
  for (char c : choices) text += c == '|' ? std::string("|\\:") : std::string(1, c);
  return text;
}

std::string option_entry(const OptionHelp& option) {
  std::string names;
  for (const auto& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) names += "=\\fI" + breakable(roff(option.value)) + "\\fR";
  // A long list of values fills lines without a blank that they could be adjusted by.
  return fmt::format(".TP\n.na\n{}\n.ad\n{}\n", names, roff(option.text));
}

std::string command_section(const Command& command) {
  std::string text =
      fmt::format(".SS {}\n{}.\n.PP\n{} {}\n", bold(command.name), roff(command.summary),
                  bold("tailtrace " + std::string(command.name)), roff(command.usage));
  if (!command.details.empty()) text += fmt::format(".PP\n{}\n", roff(command.details));
  for (const auto& example : command.examples)
    text += fmt::format(".PP\n{}:\n.PP\n.nf\n.RS 4\n{}\n.RE\n.fi\n", roff(example.says),
                        roff(example.line));
  for (const auto& option : options_of(command)) text += option_entry(option);
  return text;
}

constexpr std::string_view kClosing = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
the answer is no, or different
.TP
2
arguments that cannot be used
.TP
3
no usable engine
.TP
4
the system refused
.TP
5
a file that cannot be understood
.TP
6
the history has gaps and \fB\-\-strict\fR was given
.TP
7
a system call failed
.TP
8
the process or the debugger is gone
.PP
\fBtailtrace run\fR and \fBtailtrace watch\fR return the exit status of the program they ran,
128 + N if signal N ended it.
.SH ENVIRONMENT
.TP
\fBDEBUGINFOD_URLS\fR
the servers that \fB\-\-debuginfod\fR asks
.TP
\fBNO_COLOR\fR, \fBTERM\fR
no colours if the first is set, or the second is \fIdumb\fR, empty or not set
.TP
\fBPATH\fR
where gdb, gdbserver and qemu\-x86_64 are found
.TP
\fBTAILTRACE_QEMU\fR, \fBTAILTRACE_QEMU_PLUGIN\fR
the qemu\-x86_64 to use, and our plugin for it, where they are not found
.TP
\fBTAILTRACE_SESSIONS\fR, \fBXDG_RUNTIME_DIR\fR
the first of them that is a folder has the recordings that are not kept; else /dev/shm
.TP
\fBTMPDIR\fR
where sockets and scripts for debuggers live, unless \fBXDG_RUNTIME_DIR\fR is set
.TP
\fBXDG_STATE_HOME\fR
below it, in \fItailtrace\fR, are the recordings that are kept
.SH SEE ALSO
.BR gdb (1),
.BR gdbserver (1),
.BR qemu\-user (1)
)";

}  // namespace

std::string man_page(const std::vector<Command>& table) {
  std::string text = fmt::format(
      ".\\\" Made by `tailtrace help --man`.\n"
      ".TH TAILTRACE 1 \"\" \"tailtrace {}\" \"User Commands\"\n"
      ".SH NAME\ntailtrace \\- what ran just before the stop, for GDB and LLDB\n"
      ".SH SYNOPSIS\n.B tailtrace\n\\fIVERB\\fR [\\fIOPTIONS\\fR] ...\n"
      ".br\n.B tailtrace help\n[\\fIVERB\\fR]\n.br\n.B tailtrace \\-\\-version\n"
      ".SH DESCRIPTION\n"
      "tailtrace records the branches of a program into a buffer that overwrites itself, so that "
      "the newest are always there when the program stops, and serves them to stock debuggers.\n"
      ".SH VERBS\n",
      TAILTRACE_VERSION);
  for (const auto& command : table) text += command_section(command);
  return text + std::string(kClosing);
}

}  // namespace tailtrace
