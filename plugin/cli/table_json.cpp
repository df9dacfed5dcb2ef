#include <nlohmann/json.hpp>

#include "plugin/cli/help.h"
#include "plugin/cli/manual.h"

namespace tailtrace {

std::string table_json(const std::vector<Command>& table) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson verbs = OrderedJson::array();
  for (const Command& command : table) {
    OrderedJson options = OrderedJson::array();
    for (const OptionHelp& option : options_of(command))
      if (!option.positional)
        options.push_back({{"names", option.names},
                           {"value", option.value},
                           {"choices", option.choices},
                           {"text", option.text}});
    verbs.push_back({{"name", command.name},
                     {"summary", command.summary},
                     {"usage", command.usage},
                     {"options", std::move(options)}});
  }
  return OrderedJson({{"schema", "tailtrace.verbs/1"}, {"verbs", std::move(verbs)}}).dump() + "\n";
}

}  // namespace tailtrace
