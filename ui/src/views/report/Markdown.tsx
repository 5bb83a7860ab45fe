import ReactMarkdown from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import { plain } from "../../model/plain.ts";

/** Markdown of agents: no HTML of theirs, no script, no picture that would be fetched. */
export default function Markdown({ text }: { text: string }) {
  return (
    <article className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[rehypeSanitize]}
        skipHtml
        components={{
          img: ({ alt }) => <span>{alt}</span>,
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noreferrer noopener">
              {children}
            </a>
          ),
          // On a phone a table scrolls by itself, and can be reached by keyboard.
          table: ({ children }) => (
            <div className="table-scroll" tabIndex={0} role="group">
              <table>{children}</table>
            </div>
          ),
        }}
      >
        {plain(text)}
      </ReactMarkdown>
    </article>
  );
}
