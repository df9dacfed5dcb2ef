#include "plugin/cli/commands.h"

namespace tailtrace {

std::vector<Command> all_commands() {
  std::vector<Command> table;
  table.push_back(run_command());
  table.push_back(attach_command());
  table.push_back(watch_command());
  table.push_back(serve_command());
  table.push_back(open_command());
  table.push_back(history_command());
  table.push_back(calls_command());
  table.push_back(last_command());
  table.push_back(hits_command());
  table.push_back(why_command());
  table.push_back(find_command());
  table.push_back(stats_command());
  table.push_back(coverage_command());
  table.push_back(diff_command());
  table.push_back(export_command());
  table.push_back(save_command());
  table.push_back(info_command());
  table.push_back(decode_command());
  table.push_back(packets_command());
  table.push_back(doctor_command());
  table.push_back(version_command());
  return table;
}

}  // namespace tailtrace
