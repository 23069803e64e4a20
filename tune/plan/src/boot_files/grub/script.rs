//! GRUB's script language: a menu as words, commands and blocks. What GRUB's parser rejects is rejected here.

use std::{iter::Peekable, rc::Rc, str::Chars};

/// Maximum depth of nested blocks; menus that generators write stay below it.
const DEPTH_MAX: usize = 32;
/// Words that start or end a compound command where a command could start.
const KEYWORDS: [&str; 15] = [
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "until", "while",
];

/// A word before its variables are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::boot_files) struct Word {
    pub(in crate::boot_files) parts: Vec<Part>,
    /// No part of the word is quoted, escaped or a variable.
    is_bare: bool,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::boot_files) enum Part {
    /// Text without its quotes.
    Text { text: String, is_quoted: bool },
    /// A variable; its value is split into words unless it is quoted.
    Variable { name: String, is_quoted: bool },
    /// A text that GRUB translates.
    Translated,
}

impl Word {
    /// The text in front of the first variable.
    pub(in crate::boot_files) fn start(&self) -> &str {
        if let Some(Part::Text { text, .. }) = self.parts.first() { text } else { "" }
    }

    /// The word as it was written, without quotes.
    pub(in crate::boot_files) fn written(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text { text, .. } => text.clone(),
            Part::Variable { name, .. } => format!("${name}"),
            Part::Translated => String::new(),
        };
        self.parts.iter().map(part).collect()
    }

    fn is(&self, keyword: &str) -> bool {
        self.is_bare && self.start() == keyword
    }

    fn is_keyword(&self) -> bool {
        KEYWORDS.iter().any(|keyword| self.is(keyword))
    }

    fn push(&mut self, letter: char, is_quoted: bool) {
        if let Some(Part::Text { text, is_quoted: same }) = self.parts.last_mut()
            && *same == is_quoted
        {
            text.push(letter);
        } else {
            self.parts.push(Part::Text { text: letter.into(), is_quoted });
        }
    }
}

pub(in crate::boot_files) type Script = Rc<Vec<Statement>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::boot_files) enum Statement {
    /// A command, with the script of /etc/grub.d that wrote it, and the block that is its last argument.
    Command { words: Vec<Word>, block: Option<Script>, section: Rc<str> },
    /// Conditions with what follows from each, and what follows from none.
    If { arms: Vec<(Script, Script)>, otherwise: Script },
    /// A `for` loop.
    For { name: String, words: Vec<Word>, body: Script },
    /// A `while` or `until` loop.
    While { condition: Script, body: Script, is_until: bool },
    /// The definition of a function.
    Function { name: String, body: Script },
    /// A statement that GRUB rejects.
    Wrong { line: usize },
}

/// Parses a menu. A statement that GRUB rejects is [`Statement::Wrong`], and the next line starts another.
pub(in crate::boot_files) fn parse(text: &str) -> Script {
    let letters = text.chars().peekable();
    let mut parser = ScriptParser { letters, line: 1, section: "".into(), next: Token::Newline };
    parser.advance();
    let mut script = Vec::new();
    while parser.next != Token::End {
        if parser.take(&Token::Newline) {
            continue;
        }
        let line = parser.line;
        match parser.statement(0) {
            Ok(statement) if parser.is_at_delimiter() => {
                script.push(statement);
                parser.advance();
            }
            _ => {
                script.push(Statement::Wrong { line });
                while ![Token::Newline, Token::End].contains(&parser.next) {
                    parser.advance();
                }
            }
        }
    }
    Rc::new(script)
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(Word),
    Newline,
    Semicolon,
    Open,
    Close,
    Wrong,
    End,
}

struct Rejected;

struct ScriptParser<'a> {
    letters: Peekable<Chars<'a>>,
    line: usize,
    section: Rc<str>,
    next: Token,
}

impl ScriptParser<'_> {
    fn advance(&mut self) -> Token {
        let next = self.token();
        std::mem::replace(&mut self.next, next)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_there = self.next == *token;
        if is_there {
            self.advance();
        }
        is_there
    }

    fn is_at_delimiter(&self) -> bool {
        [Token::Newline, Token::Semicolon, Token::End].contains(&self.next)
    }

    fn is_at(&self, keyword: &str) -> bool {
        matches!(&self.next, Token::Word(word) if word.is(keyword))
    }

    fn expect(&mut self, keyword: &str) -> Result<(), Rejected> {
        if !self.is_at(keyword) {
            return Err(Rejected);
        }
        self.advance();
        Ok(())
    }

    fn letter(&mut self) -> Option<char> {
        let letter = self.letters.next();
        self.line += usize::from(letter == Some('\n'));
        letter
    }

    fn token(&mut self) -> Token {
        loop {
            match self.letters.peek() {
                Some(' ' | '\t' | '\r') => drop(self.letters.next()),
                Some('#') => self.comment(),
                _ => break,
            }
        }
        let token = match self.letters.peek() {
            None => return Token::End,
            Some('\n') => Token::Newline,
            Some(';') => Token::Semicolon,
            Some('{') => Token::Open,
            Some('}') => Token::Close,
            Some('|' | '&' | '<' | '>') => Token::Wrong,
            Some(_) => return self.word().map_or(Token::Wrong, Token::Word),
        };
        self.letter();
        token
    }

    fn comment(&mut self) {
        let mut text = String::new();
        while let Some(letter) = self.letters.next_if(|c| *c != '\n') {
            text.push(letter);
        }
        if let Some(script) = text.strip_prefix("### BEGIN ") {
            self.section = script.trim_end().trim_end_matches(" ###").into();
        } else if text.starts_with("### END ") {
            self.section = "".into();
        }
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = Word { is_bare: true, ..Word::default() };
        while let Some(letter) = self.letters.next_if(|c| !" \t\r\n;|&<>{}".contains(*c)) {
            word.is_bare &= !['\\', '\'', '"', '$'].contains(&letter);
            match letter {
                '\\' => self.letter().filter(|c| *c != '\n').into_iter().for_each(|c| word.push(c, true)),
                '\'' => {
                    word.parts.push(Part::Text { text: String::new(), is_quoted: true });
                    while let letter = self.letter()?
                        && letter != '\''
                    {
                        word.push(letter, true);
                    }
                }
                '"' => self.double_quoted(&mut word)?,
                '$' if self.letters.peek() == Some(&'"') => {
                    self.letter();
                    self.double_quoted(&mut Word::default())?;
                    word.parts.push(Part::Translated);
                }
                '$' => word.parts.push(Part::Variable { name: self.name()?, is_quoted: false }),
                letter => word.push(letter, false),
            }
        }
        let is_operator = word.is("[[") || word.is("]]");
        (!is_operator).then_some(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        word.parts.push(Part::Text { text: String::new(), is_quoted: true });
        loop {
            match self.letter()? {
                '"' => return Some(()),
                '\r' => {}
                '$' => word.parts.push(Part::Variable { name: self.name()?, is_quoted: true }),
                '\\' => match self.letters.peek() {
                    Some('$' | '"' | '\\') => word.push(self.letter()?, true),
                    Some('\n') => drop(self.letter()),
                    _ => word.push('\\', true),
                },
                letter => word.push(letter, true),
            }
        }
    }

    /// The name behind a `$`: `name`, `1`, `?` or one of these in braces.
    fn name(&mut self) -> Option<String> {
        let is_braced = self.letters.next_if_eq(&'{').is_some();
        let first = self.letters.next_if(|c| c.is_ascii_alphanumeric() || "_?#*@".contains(*c))?;
        let mut name = String::from(first);
        let belongs = |c: &char| match first {
            '0'..='9' => c.is_ascii_digit(),
            '?' | '#' | '*' | '@' => false,
            _ => c.is_ascii_alphanumeric() || *c == '_',
        };
        while let Some(letter) = self.letters.next_if(belongs) {
            name.push(letter);
        }
        (!is_braced || self.letters.next_if_eq(&'}').is_some()).then_some(name)
    }

    fn statement(&mut self, depth: usize) -> Result<Statement, Rejected> {
        if depth >= DEPTH_MAX {
            return Err(Rejected);
        }
        let section = Rc::clone(&self.section);
        let Token::Word(first) = self.advance() else { return Err(Rejected) };
        if first.is("if") {
            return self.conditional(depth);
        }
        if first.is("for") {
            let name = self.bare()?;
            self.expect("in")?;
            let words = self.words();
            self.delimiters()?;
            self.expect("do")?;
            let body = self.list(depth)?;
            self.expect("done")?;
            return Ok(Statement::For { name, words, body });
        }
        if first.is("while") || first.is("until") {
            let condition = self.list(depth)?;
            self.expect("do")?;
            let body = self.list(depth)?;
            self.expect("done")?;
            return Ok(Statement::While { condition, body, is_until: first.is("until") });
        }
        if first.is("function") && depth == 0 {
            let name = self.bare()?;
            while self.take(&Token::Newline) {}
            let body = self.block(depth, false)?.ok_or(Rejected)?;
            return Ok(Statement::Function { name, body });
        }
        if first.is_keyword() {
            return Err(Rejected);
        }
        let mut words = vec![first];
        words.append(&mut self.words());
        let block = self.block(depth, true)?;
        Ok(Statement::Command { words, block, section })
    }

    fn bare(&mut self) -> Result<String, Rejected> {
        match self.advance() {
            Token::Word(word) if word.is_bare && !word.is_keyword() => Ok(word.written()),
            _ => Err(Rejected),
        }
    }

    fn words(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        while matches!(self.next, Token::Word(_)) {
            if let Token::Word(word) = self.advance() {
                words.push(word);
            }
        }
        words
    }

    /// Parses the rest of an `if` or `elif`, up to and including `fi`.
    fn conditional(&mut self, depth: usize) -> Result<Statement, Rejected> {
        let mut arms = Vec::new();
        let mut otherwise = Script::default();
        loop {
            let condition = self.list(depth)?;
            self.expect("then")?;
            arms.push((condition, self.list(depth)?));
            if self.is_at("elif") {
                self.advance();
                continue;
            }
            if self.is_at("else") {
                self.advance();
                otherwise = self.list(depth)?;
            }
            self.expect("fi")?;
            return Ok(Statement::If { arms, otherwise });
        }
    }

    /// A block in braces; none if the next token opens none.
    fn block(&mut self, depth: usize, may_end_at_brace: bool) -> Result<Option<Script>, Rejected> {
        if !self.take(&Token::Open) {
            return Ok(None);
        }
        let list = self.commands(depth, may_end_at_brace)?;
        if self.take(&Token::Close) { Ok(Some(list)) } else { Err(Rejected) }
    }

    /// Commands up to a keyword that none of them starts with.
    fn list(&mut self, depth: usize) -> Result<Script, Rejected> {
        self.commands(depth, false)
    }

    fn commands(&mut self, depth: usize, may_end_at_brace: bool) -> Result<Script, Rejected> {
        while self.take(&Token::Newline) {}
        let mut script = Vec::new();
        loop {
            script.push(self.statement(depth + 1)?);
            if may_end_at_brace && self.next == Token::Close {
                break;
            }
            self.delimiters()?;
            let ends = ["then", "elif", "else", "fi", "do", "done"].iter().any(|keyword| self.is_at(keyword));
            if ends || self.next == Token::Close {
                break;
            }
        }
        Ok(Rc::new(script))
    }

    fn delimiters(&mut self) -> Result<(), Rejected> {
        if !self.take(&Token::Newline) && !self.take(&Token::Semicolon) {
            return Err(Rejected);
        }
        while self.take(&Token::Newline) {}
        Ok(())
    }
}
