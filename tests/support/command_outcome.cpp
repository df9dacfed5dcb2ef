#include "tests/support/command_outcome.h"

#include <cstdlib>

namespace tailtrace {

CapturedFile::CapturedFile() : file_(::open_memstream(&data_, &size_)) {}

CapturedFile::~CapturedFile() {
  std::fclose(file_);
  std::free(data_);
}

std::string CapturedFile::text() {
  std::fflush(file_);
  return {data_, size_};
}

CommandOutcome outcome_of(std::vector<std::string> args, const std::vector<Command>& table) {
  CapturedFile out, err;
  const int status = run_command_line(table, std::move(args), out.file(), err.file());
  return {status, out.text(), err.text()};
}

}  // namespace tailtrace
