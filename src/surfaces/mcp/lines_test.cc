// Lines in, lines out, through real pipes (field reports M20, M28).
#include "surfaces/mcp/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "os/stream.h"
#include "support/child.h"

namespace holdfast::mcp {
namespace {

using Kind = LineReader::Kind;

class Lines : public testing::Test {
 protected:
  Lines() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading_ = os::Handle(ends[0]);
    writing_ = os::Handle(ends[1]);
  }
  // What a reader with this limit makes of these bytes.
  std::vector<std::pair<Kind, std::string>> read(const std::string& bytes, std::size_t limit, std::size_t piece = 7) {
    std::thread sender([&] {
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        EXPECT_TRUE(os::write_stream(writing_, std::string_view(bytes).substr(at, piece), Code::os_failed).ok());
      }
      writing_.reset();
    });
    LineReader reader(reading_, limit);
    std::vector<std::pair<Kind, std::string>> found;
    std::string line;
    for (Kind kind = reader.next(line); kind != Kind::end; kind = reader.next(line)) found.emplace_back(kind, line);
    sender.join();
    return found;
  }
  os::Handle reading_;
  os::Handle writing_;
};

using Found = std::vector<std::pair<Kind, std::string>>;

TEST_F(Lines, ComeOneByOneWithEitherLineEnd) {
  EXPECT_EQ(read("a\r\nb\n\nc\rd\n", 100),
            (Found{{Kind::text, "a"}, {Kind::text, "b"}, {Kind::text, ""}, {Kind::text, "c\rd"}}));
}

TEST_F(Lines, TakeALastOneWithoutANewline) {
  EXPECT_EQ(read("a\nb", 100), (Found{{Kind::text, "a"}, {Kind::text, "b"}}));
}

TEST_F(Lines, OverTheLimitAreToldOnceAndSkippedToTheirEnd) {
  EXPECT_EQ(read(std::string(1000, 'x') + "\nok\n", 10), (Found{{Kind::too_long, ""}, {Kind::text, "ok"}}));
}

TEST_F(Lines, OverTheLimitAtTheEndOfInputAreToldToo) {
  EXPECT_EQ(read("ok\n" + std::string(1000, 'x'), 10), (Found{{Kind::text, "ok"}, {Kind::too_long, ""}}));
}

TEST_F(Lines, OfExactlyTheLimitAreTextAndOneByteMoreIsNot) {
  EXPECT_EQ(read(std::string(10, 'x') + "\n" + std::string(11, 'y') + "\nz", 10, 1),
            (Found{{Kind::text, std::string(10, 'x')}, {Kind::too_long, ""}, {Kind::text, "z"}}));
}

TEST_F(Lines, KeepNulBytesAndBytesThatAreNoText) {
  const std::string bytes(
      "a\0\xff"
      "b",
      4);
  EXPECT_EQ(read(bytes + "\n", 10), (Found{{Kind::text, bytes}}));
}

TEST_F(Lines, AreTheSameHoweverTheyArriveInPieces) {
  std::string bytes;
  for (int number = 0; number < 300; ++number) bytes += std::string(static_cast<std::size_t>(number % 23), 'l') + "\n";
  const Found whole = read(bytes, 16, bytes.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{17}}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading_ = os::Handle(ends[0]);
    writing_ = os::Handle(ends[1]);
    EXPECT_EQ(read(bytes, 16, piece), whole) << piece;
  }
}

// M28: one writer at a time, whole lines, though the reader is slow and many write.
TEST_F(Lines, M28WrittenByManyNeverMix) {
  LineWriter writer(writing_);
  constexpr int kWriters = 8;
  std::vector<std::thread> writers;
  for (int number = 0; number < kWriters; ++number) {
    writers.emplace_back([&, number] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(
            writer.write(std::string(10'000 + static_cast<std::size_t>(number), static_cast<char>('a' + number))));
      }
    });
  }
  std::thread closer([&] {
    for (std::thread& one : writers) one.join();
    writing_.reset();
  });
  LineReader reader(reading_, 1U << 20U);
  std::string line;
  int count = 0;
  for (Kind kind = reader.next(line); kind == Kind::text; kind = reader.next(line), ++count) {
    ASSERT_EQ(line.find_first_not_of(line.front()), std::string::npos) << "two lines in one";
    ASSERT_EQ(line.size(), 10'000U + static_cast<std::size_t>(line.front() - 'a'));
  }
  closer.join();
  EXPECT_EQ(count, kWriters * 20);
}

TEST_F(Lines, AreNotWrittenAnyMoreOnceNobodyReads) {
  LineWriter writer(writing_);
  EXPECT_TRUE(writer.write("somebody reads"));
  reading_.reset();
  EXPECT_FALSE(writer.write("nobody does"));
  EXPECT_TRUE(writer.is_broken());
  EXPECT_FALSE(writer.write("still nobody"));
}

// M28: a descriptor that another program left in non-blocking mode loses nothing.
TEST_F(Lines, M28AreWrittenWholeToADescriptorThatDoesNotBlock) {
  ::fcntl(writing_.fd(), F_SETFL, O_NONBLOCK);
  LineWriter writer(writing_);
  const std::string text(3U << 20U, 't');
  std::thread sender([&] {
    EXPECT_TRUE(writer.write(text));
    writing_.reset();
  });
  LineReader reader(reading_, 4U << 20U);
  std::string line;
  EXPECT_EQ(reader.next(line), Kind::text);
  EXPECT_EQ(line, text);
  sender.join();
}

TEST_F(Lines, OfAnInputThatDoesNotBlockAreWaitedFor) {
  ::fcntl(reading_.fd(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(read("a\nb\n", 10, 1), (Found{{Kind::text, "a"}, {Kind::text, "b"}}));
}

}  // namespace
}  // namespace holdfast::mcp
