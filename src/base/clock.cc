#include "base/clock.h"

#include <cstdio>

namespace holdfast {
namespace {

// Days since 1970-01-01 of a proleptic Gregorian date, and back (Howard Hinnant's published algorithm).
std::int64_t days_from_civil(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468;
}

void civil_from_days(std::int64_t days, std::int64_t& year, unsigned& month, unsigned& day) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * day_of_year + 2) / 153;
  day = day_of_year - (153 * shifted + 2) / 5 + 1;
  month = shifted < 10 ? shifted + 3 : shifted - 9;
  year = static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2);
}

}  // namespace

std::string format_wall(std::int64_t wall_us) {
  std::int64_t seconds = wall_us / 1000000;
  std::int64_t micros = wall_us % 1000000;
  if (micros < 0) {
    micros += 1000000;
    --seconds;
  }
  std::int64_t days = seconds / 86400;
  std::int64_t rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  std::int64_t year = 0;
  unsigned month = 0;
  unsigned day = 0;
  civil_from_days(days, year, month, day);
  char text[64];
  std::snprintf(text, sizeof text, "%04lld-%02u-%02uT%02lld:%02lld:%02lld.%06lldZ", static_cast<long long>(year), month,
                day, static_cast<long long>(rest / 3600), static_cast<long long>(rest / 60 % 60),
                static_cast<long long>(rest % 60), static_cast<long long>(micros));
  return text;
}

bool parse_wall(const std::string& text, std::int64_t& wall_us) {
  long long year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%4lld-%2u-%2uT%2u:%2u:%2u%n", &year, &month, &day, &hour, &minute, &second, &used) !=
      6) {
    return false;
  }
  std::int64_t micros = 0;
  std::size_t at = static_cast<std::size_t>(used);
  if (at < text.size() && text[at] == '.') {
    std::int64_t scale = 100000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      micros += (text[at] - '0') * scale;
  }
  if (text.substr(at) != "Z" || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
      second > 60) {
    return false;
  }
  wall_us = (days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second) * 1000000 + micros;
  return true;
}

}  // namespace holdfast
